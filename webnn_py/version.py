"""The package's version: of the distribution, and of what the package writes into files."""

__version__ = "0.2.0"
