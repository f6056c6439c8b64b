"""Sizes that are known at dispatch only: expressions of named dimensions, their values, decisions about them."""
