"""The runtime of a device: pipelines, memory, the queue, and compiled graphs."""
