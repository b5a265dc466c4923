"""Where in the data a run goes on."""

import pytest

from heed.data.batching import DataPosition
from heed.runs.resume import position_of

ORDER = ["packed", 25_000, 1]


def test_in_the_same_order_it_goes_on_where_it_was():
    assert position_of({"place": [2, 7], "order": ORDER}, list(ORDER)) == (DataPosition(2, 7), [])
    assert position_of({"place": [2, 7]}, ORDER) == (DataPosition(2, 7), []), "of a checkpoint that does not say"


@pytest.mark.parametrize("order", [["padded", 25_000, 1], ["packed", 12_500, 1], ["packed", 25_000, 2]])
def test_in_another_order_the_epoch_begins_anew_and_that_is_told(order):
    place, (told,) = position_of({"place": [2, 7], "order": order}, ORDER)
    assert place == DataPosition(2, 0)
    assert "now packed, of 25,000 tokens, seed 1 (before:" in told and "so epoch 3 begins anew" in told
    assert position_of({"place": [2, 0], "order": order}, ORDER) == (DataPosition(2, 0), []), "nothing is begun anew"
