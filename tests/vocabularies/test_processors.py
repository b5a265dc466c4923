"""The processors of a model folder: what is written is read back, of every kind and in every combination."""

import numpy as np
import pytest

from heed.vocabularies import processors
from heed.vocabularies.histories import Histories
from heed.vocabularies.items import Items
from heed.vocabularies.labels import Labels, Numbers
from heed.vocabularies.sound import FeatureSettings, SoundFeatures
from tests.convert.small import vocabularies


def histories():
    ends, none = np.array([2, 1], np.int32), np.full(2, -1, np.int32)
    arrays = {"items": np.array([0, 1, 1], np.uint32), "offsets": np.array([0, 2, 3])}
    return Histories(["ann", "bob"], 2, {**arrays, "train_end": ends, "valid_at": none, "test_at": none})


SOUND = SoundFeatures(FeatureSettings(kind="mel", mels=3, normalize="corpus"), [0.5, 1.0, 2.0], [1.0, 2.0, 3.0])
FOLDERS = {
    "a translator with one vocabulary": lambda: dict(zip(("source", "target"), vocabularies("one"), strict=True)),
    "a translator with two": lambda: dict(zip(("source", "target"), vocabularies("two"), strict=True)),
    "a translator of another system": lambda: dict(zip(("source", "target"), vocabularies("bart"), strict=True)),
    "a language model": lambda: {"text": vocabularies("bart")[0]},
    "a classifier": lambda: {"source": vocabularies("one")[0], "labels": Labels(["no", "yes"])},
    "a judge": lambda: {"source": vocabularies("pegasus")[0], "labels": Numbers()},
    "a recognizer": lambda: {"sound": SOUND, "target": vocabularies("one")[1]},
    "a recommender": lambda: {"items": Items(["tea", "milk"]), "histories": histories()},
}


def key(own):
    """What tells a processor from another."""
    if isinstance(own, Histories):
        return own.names, [list(own.history(name)) for name in own.names]
    return own.key() if hasattr(own, "key") else (type(own), getattr(own, "names", None))


@pytest.mark.parametrize("kind", FOLDERS)
def test_what_is_written_is_read_back(kind, tmp_path):
    own = FOLDERS[kind]()
    found = processors.read(tmp_path, processors.write(tmp_path, own))
    assert list(found) == list(own)
    assert {name: key(one) for name, one in found.items()} == {name: key(one) for name, one in own.items()}


def test_sound_is_told_from_everything_else():
    assert processors.is_sound(SOUND) is True
    assert [processors.is_sound(own) for own in (Labels(["a"]), Items(["a"]), vocabularies("one")[0])] == [False] * 3


@pytest.mark.parametrize("value", [10**400, float("nan"), float("inf"), "1", True, None])
def test_a_statistic_of_sound_is_a_number(value):
    facts = SOUND.facts()
    assert SoundFeatures.read(facts, "here").mean == SOUND.mean
    with pytest.raises(ValueError, match=r"here\.mean must be a list of 3 numbers"):
        SoundFeatures.read({**facts, "mean": [0.5, 1.0, value]}, "here")
