"""What runs in the caller's task: check, copy bytes, enqueue, hand out a promise."""
