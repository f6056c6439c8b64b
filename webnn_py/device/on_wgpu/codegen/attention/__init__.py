"""Attention in one kernel: scores never lie in memory."""
