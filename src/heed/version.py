"""The version of heed, below everything that writes it down."""

__version__ = "0.1.0"
