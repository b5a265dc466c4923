"""Words for masks: how a text is hidden when a model is measured."""

from types import SimpleNamespace

import pytest

from heed.data.pretraining import PairSettings
from heed.products.mask_filler import MaskFiller


def test_a_text_is_hidden_as_in_training_and_else_as_bert_does_it():
    stated = {"length": 16, "share": 0.3, "name": "masked"}
    known = {name: value for name, value in stated.items() if name in PairSettings.__dataclass_fields__}
    assert known == {"length": 16, "share": 0.3}
    for facts, positions, expected in (
        ({"pretraining": stated}, 512, PairSettings(length=16, share=0.3)),
        ({}, 512, PairSettings()),
        ({}, 20, PairSettings(length=20)),
    ):
        filler = SimpleNamespace(facts=facts, model=SimpleNamespace(config=SimpleNamespace(max_length=positions)))
        assert MaskFiller.settings.fget(filler) == expected


@pytest.mark.parametrize("change", [{"share": "x"}, {"length": None}, {"masked": [1]}])
def test_training_settings_of_another_type_are_named(change):
    config = SimpleNamespace(max_length=64)
    filler = SimpleNamespace(facts={"pretraining": change}, model=SimpleNamespace(config=config))
    with pytest.raises(ValueError, match=rf"config\.json: pretraining\.{next(iter(change))}: .* is not a"):
        MaskFiller.settings.fget(filler)
