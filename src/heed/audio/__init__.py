"""Sound as people have it: files, sampling rates, and the features that models read."""
