"""Parts of ``Device``: memory that is lent."""
