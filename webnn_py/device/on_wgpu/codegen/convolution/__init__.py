"""What convolutions read, and those that are no matrix product."""
