"""Fuzzing of everything that reads files: damaged and hostile inputs, guided by the branches that they reach (make check-fuzz)."""
