"""The device side of the API: devices, and what they share."""
