"""Products of 8-bit integers by torch's own integers, for CPUs without instructions for them."""

import pytest

from heed.kernels import int8


def product_of_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the operator by plain arithmetic; weights stay in their order."""
    monkeypatch.setattr(int8, "pack", lambda weight: weight)
    monkeypatch.setattr(
        int8,
        "integer_product",
        lambda values, weight, scale: ((values.int() - int8.ZERO) @ weight.int().T).float() * scale,
    )
