"""Audio: files, sample rates, and the features that models read."""
