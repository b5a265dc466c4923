"""The version of heed, in the lowest layer, because every layer writes it."""

__version__ = "0.2.0"
