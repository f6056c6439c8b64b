"""What the devices share, beyond the seam that every backend has."""
