"""Interaction logs: which user interacted with which item, and when."""
