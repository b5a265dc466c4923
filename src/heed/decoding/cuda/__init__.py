"""Beam search on the GPU, with fixed shapes and no host synchronization between tokens. It finds what `beam` finds."""
