"""The table of rules by operator and version, and the call of a rule with a node's inputs and attributes."""
