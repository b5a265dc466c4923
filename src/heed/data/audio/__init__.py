"""Recordings with what is said in them."""
