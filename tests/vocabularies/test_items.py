"""Items by name: what is unknown, and what it is compared with."""

import difflib

import pytest

from heed.vocabularies.items import COMPARED, Items

ITEMS = ["tea", "green tea", "Milk", "사과 주스", *(f"item number {i}" for i in range(20_000)), "last one"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("milk", "Milk"), ("green te", "green tea"), ("사과주스", "사과 주스"), ("last one.", "last one"), ("xyz", None), ("", None)],
)  # fmt: skip
def test_an_unknown_item_is_refused_with_a_similar_one_from_the_whole_list(name, meant):
    with pytest.raises(ValueError, match="is not one of the 20,005 items") as error:
        Items(ITEMS).encode(["tea", name])
    assert str(error.value).endswith(f"; did you mean {meant}?" if meant else "the model was trained on")
    with pytest.raises(ValueError, match=r"the model was trained on$"):
        Items(ITEMS).encode([name], hints=False)


def test_only_a_few_hundred_names_are_compared(monkeypatch):
    compared = []
    monkeypatch.setattr(difflib, "get_close_matches", lambda name, names, n: compared.append(len(names)) or [])
    for name in ("item number 2000x", "item", "i" * 1000):
        with pytest.raises(ValueError, match="is not one of"):
            Items(ITEMS).encode([name])
    assert compared[0] == COMPARED and max(compared) <= COMPARED
