"""Several corpora in a recipe."""

from pathlib import Path

import pytest

from heed.runs.recipe import parse, read
from heed.runs.resume import check_folder
from heed.vocabularies import sentencepiece
from heed.vocabularies.sentencepiece import SubwordsConfig
from tests.runs.test_prepare import PAIRS, prepare, write

ONE = {"source": ["a.en"], "target": ["a.de"]}


def recipe(*corpora, **sections):
    data = {"corpora": list(corpora), "holdout": 6, **sections.pop("data", {})}
    return parse({"data": data, "subwords": {"size": 330} | sections.pop("subwords", {}), **sections})


def test_a_recipe_with_corpora_survives_its_file(tmp_path):
    asked = recipe(ONE, {"tsv": "b.tsv", "columns": [2, 1], "weight": 2, "tag": "<bt>", "name": 'a "b"'})
    path = tmp_path / "recipe.toml"
    path.write_text(asked.to_toml(), "utf-8")
    assert read(path, [], saved=True) == asked
    assert asked.data.corpora[1].tsv == ["b.tsv"] and asked.data.corpora[1].weight == 2.0
    assert '[[data.corpora]]\nname = "a \\"b\\""' in asked.to_toml()


def test_a_resumed_run_may_rename_a_corpus_and_change_nothing_else(tmp_path):
    (tmp_path / "recipe.toml").write_text(recipe(ONE, {**ONE, "weight": 2.0}).to_toml(), "utf-8")
    told = []
    check_folder(recipe(ONE, {**ONE, "weight": 2.0, "name": "x"}), tmp_path, True, told.append)
    assert told == ["data.corpora[1].name is now 'x'; it was None."]
    with pytest.raises(ValueError, match=r"data\.corpora\[1\]\.weight was 2\.0 in .* and is now 3\.0: a resumed run"):
        check_folder(recipe(ONE, {**ONE, "weight": 3.0}), tmp_path, True, told.append)
    with pytest.raises(ValueError, match=r"data\.corpora\[1\]\.source was \['a\.en'\] in .* and is now None"):
        check_folder(recipe(ONE), tmp_path, True, told.append)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"data": {"corpora": {"tsv": "a"}}}, r"data\.corpora: this section may be repeated, .*: write \[\[data\.corpora\]\]"),
        ({"data": {"corpora": [{"tsv": "a", "wieght": 1}]}}, r"data\.corpora\[0\]\.wieght: no such setting; did you mean"),
        ({"data": {"corpora": [{}]}}, r"data\.corpora: each corpus needs files"),
        ({"data": {"corpora": [{"tsv": "a", "weight": 0}]}}, r"the weight of a is 0\.0; it must be a number above 0"),
        ({"data": {"corpora": [{"tsv": "a", "tag": "a b"}]}}, r"the tag of a is 'a b'; it must be one word, such as <bt>"),
        ({"data": {"corpora": [{"tsv": "a"}], "tsv": "b"}}, r"data: give the training files .*; not both"),
        ({"data": {"corpora": [{"tsv": "a", "tag": "<bt>"}]}}, r"nothing to validate on, since tagged text is not held"),
        ({"data": {"corpora": [{"tsv": "a"}, {"tsv": "b", "tag": "<bt>"}]}, "subwords": {"kind": "words"}},
         r"data\.corpora: <bt> needs Heed's own subword vocabulary, and this one is words"),
        ({"data": {"corpora": [{"source": "a"}, {"source": "b", "tag": "<x>"}]}, "task": {"name": "denoising"},
          "model": {"name": "bart"}}, r"data\.corpora: denoising has no tags and a single language, so <x> has no effect"),
        ({"data": {"corpora": [{"source": "a", "weight": 2}]}, "task": {"name": "language"}, "model": {"name": "gpt2"}},
         r"a has the weight 2, but a language model reads its text once"),
        ({"data": {"corpora": [{"source": "a", "weight": 2}]}, "task": {"name": "masked"}, "model": {"name": "bert"}},
         r"a has the weight 2, but masked weights all text equally: leave it out"),
        ({"data": {"corpora": [{"source": "a", "target": "b"}]}, "task": {"name": "denoising"}, "model": {"name": "bart"}},
         r"data\.corpora: a \+ b has a target, but denoising needs only plain text"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(values, says):
    with pytest.raises(ValueError, match=says):
        parse(values)


def test_one_corpus_is_prepared_as_the_same_files_without_a_table(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    source, target = write(tmp_path / "a", PAIRS)
    plain = prepare(parse({"data": {"source": source, "target": target, "holdout": 6}, "subwords": {"size": 330}}))
    table = prepare(recipe({"source": source, "target": target}))
    assert plain.train.source.ids.tolist() == table.train.source.ids.tolist()
    assert [line[:2] for line in plain.valid] == [line[:2] for line in table.valid]


def test_corpora_are_counted_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    one, two = write(tmp_path / "one", PAIRS[:40]), write(tmp_path / "two", PAIRS[36:])
    parts = [{"source": one[0], "target": one[1]},
             {"source": two[0], "target": two[1], "weight": 0.5, "tag": "<bt>", "name": "back"}]  # fmt: skip
    asked = recipe(*parts)
    prepared = prepare(asked)
    assert asked.task.corpus_summaries(asked, prepared) == [
        "one.en + one.de: 36 of 40 pairs, weight 1; 4 set aside; filtered out: none.",
        "back: 24 of 28 pairs, weight 0.5, tag <bt>; filtered out: 4 for a duplicate pair.",
    ]
    again = prepare(recipe(parts[0], {**parts[1], "tag": "<other>"}))
    assert again.key != prepared.key
    assert prepare(recipe(parts[0], {**parts[1], "weight": 3.0})).train.folder == prepared.train.folder


def test_the_same_files_of_other_languages_are_prepared_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    one, two = write(tmp_path / "one", PAIRS[:40]), write(tmp_path / "two", PAIRS[36:])
    spm = str(tmp_path / "tags.spm")
    sentencepiece.learn([t for p in PAIRS for t in p], SubwordsConfig(), 330, [">>de<<", ">>fr<<"]).save(Path(spm))

    def prefixes(first, second):
        parts = [
            {"source": own[0], "target": own[1], "target_language": code} for own, code in ((one, first), (two, second))
        ]
        made = prepare(recipe(*parts, subwords={"source_model": spm}))
        tags = made.processors["source"].tags
        assert [made.train.source[0][0], made.train.source[len(made.train) - 1][0]] == [
            tags[f">>{first}<<"],
            tags[f">>{second}<<"],
        ]
        return made.key

    assert prefixes("de", "fr") != prefixes("fr", "de")
    with pytest.raises(
        ValueError, match=r"data\.corpora: '>>it<<' is not a tag of the vocabulary; it has >>de<<, >>fr<<"
    ):
        prefixes("it", "fr")
