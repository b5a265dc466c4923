"""Are our own parsers still needed? They are compared with well-kept libraries: `python -m bench.parsers`."""
