"""Search that stays on the card: fixed shapes, nothing asked of the host between tokens. It finds what `beam` finds."""
