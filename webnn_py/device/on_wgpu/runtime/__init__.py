"""What runs on a device: pipelines, memory, the queue, and compiled graphs."""
