"""Files of any length through a model: in chunks whose stages overlap, in constant memory, resumed where they stopped."""
