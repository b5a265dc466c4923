"""The model of a run beside its data: texts must fit its positions."""

from types import SimpleNamespace

import pytest

from heed.runs.models import check_positions
from heed.vocabularies.vocabulary import SpecialTokens


def check(limit, longest, **task):
    """A model of ten positions, of which one is taken by a token before each text."""
    vocabulary = SimpleNamespace(special=SpecialTokens(0, 1, 2, 3, before=(2,)))
    task = SimpleNamespace(filtered=True, longest=lambda recipe, prepared, most: longest, **task)
    recipe = SimpleNamespace(filters=SimpleNamespace(max_length=limit), task=task)
    model = SimpleNamespace(config=SimpleNamespace(max_length=10))
    check_positions(model, recipe, SimpleNamespace(processors={"text": vocabulary}))


def test_a_limit_of_lengths_that_the_model_has_no_positions_for_is_refused():
    check(limit=9, longest=9)
    with pytest.raises(ValueError, match=r"filters.max_length is 10, but the model has only 9 positions: lower it"):
        check(limit=10, longest=5)  # a longer text may come with other data


def test_where_the_target_is_a_label_only_the_texts_themselves_count():
    check(limit=99, longest=10, label_target=True)
    with pytest.raises(ValueError, match=r"filters.max_length is 99, but the model has only 9 positions: lower it"):
        check(limit=99, longest=11, label_target=True)
