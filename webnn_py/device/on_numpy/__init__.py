"""The numpy device: the reference that every other device is compared with."""
