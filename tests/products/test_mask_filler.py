"""Words for masks: how a text is hidden when a model is measured."""

from types import SimpleNamespace

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
