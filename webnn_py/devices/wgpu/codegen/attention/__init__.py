"""Attention in one kernel, without storing the scores."""
