"""Parts of a build that several backends have: expansion, 4-bit elements, refusals, plans, shared constants."""
