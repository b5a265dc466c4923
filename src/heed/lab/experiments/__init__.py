"""Experiments, one file each: what a part of a Transformer is for."""
