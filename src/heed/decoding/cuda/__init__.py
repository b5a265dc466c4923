"""Beam search on the GPU with fixed shapes and without host synchronization between tokens. It finds what `beam` finds."""
