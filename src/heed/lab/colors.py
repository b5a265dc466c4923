"""The colours of pictures and pages: one accent, and a ramp from light to dark in even steps of lightness (OKLCH)."""

INK = "#1b2428"
MUTED = "#6d787d"
FAINT = "#d5dbdb"
ACCENT = "#0b6f86"
WARM = "#c2571a"  # the outlines of word alignment

LIGHT_RAMP = [
    "#fcfcfc", "#cdece7", "#9fdbd8", "#72c8cd", "#43b3c3", "#069cb9",
    "#0f83a7", "#026c96", "#005485", "#0d3e6f", "#142953",
]  # fmt: skip
DARK_RAMP = [
    "#1b2126", "#193544", "#074b60", "#006176", "#0b7888", "#0f8f9b",
    "#20a7ab", "#59bcb7", "#8acfc4", "#b9e0d5", "#e5f0eb",
]  # fmt: skip
