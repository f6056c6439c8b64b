"""Parts of ``Device``: copies through the host, memory that is lent."""
