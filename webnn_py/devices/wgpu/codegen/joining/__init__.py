"""Small kernels that follow each other as the steps of one: a workgroup takes them all, with a barrier in between."""
