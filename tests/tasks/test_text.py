"""Tasks on text: settings of a recipe that exclude each other are refused before anything is read."""

import pytest

from heed.runs.recipe import parse

TAGGED = {"corpora": [{"tsv": "a"}, {"tsv": "b", "tag": "<bt>"}]}


@pytest.mark.parametrize(
    ("sections", "kind"),
    [({"subwords": {"kind": "words"}}, "words"), ({"model": {"name": "marian"}}, "marian"),
     ({"model": {"name": "bart"}}, "bart")],
)  # fmt: skip
def test_tags_need_a_vocabulary_that_can_have_them(sections, kind):
    assert parse({"data": TAGGED}).data.corpora[1].tag == "<bt>"
    assert parse({"data": {"corpora": [{"tsv": "a"}]}, **sections}).data.corpora[0].tag is None
    with pytest.raises(ValueError, match=f"<bt> needs Heed's own subword vocabulary, and this one is {kind}"):
        parse({"data": TAGGED, **sections})


@pytest.mark.parametrize("name", ["target", "valid_target"])
def test_a_task_on_plain_text_has_no_target(name):
    recipe = {"task": {"name": "denoising"}, "model": {"name": "bart"}, "data": {"source": ["a"]}}
    assert parse(recipe).data.source == ["a"]
    with pytest.raises(ValueError, match=r"data\.target is set, but denoising needs only plain text: set data\.source"):
        parse({**recipe, "data": {"source": ["a"], "valid_source": ["c"], name: ["b"]}})
