"""Interaction logs: who did something with which item, and when."""
