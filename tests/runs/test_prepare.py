"""From the files of a recipe to ids: done once, kept, and used again."""

import gzip
import hashlib
import json
import random
from itertools import product
from pathlib import Path

import pytest

from heed.data import corpus as corpora
from heed.data import prepare as preparing
from heed.data.cleaning import Cleaning
from heed.data.filters import RULES
from heed.data.synthetic import phrasebook
from heed.files import cache_folder
from heed.runs.recipe import read
from heed.vocabularies import sentencepiece
from tests.data import conftest, test_cleaning

WHO = [("the dog", "der Hund"), ("a child", "ein Kind"), ("my sister", "meine Schwester"), ("the man", "der Mann")]
DOES = [("sees", "sieht"), ("likes", "mag"), ("paints", "malt"), ("finds", "findet")]
WHAT = [("the sea", "das Meer"), ("a red house", "ein rotes Haus"), ("the street", "die Straße"), ("나무", "Bäume")]
PAIRS = [tuple(map(" ".join, zip(*parts, strict=True))) for parts in product(WHO, DOES, WHAT)]


PLAIN = [
    (f"{' '.join(own[n][0] for n in range(4))}.", f"{' '.join(own[n][1] for n in range(4))}.")
    for own in product(conftest.WHO, conftest.DOES, conftest.WHAT, test_cleaning.PLACES)
]
random.Random(4).shuffle(PLAIN)
PLAIN = PLAIN[:600]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "train", PAIRS)


def write(stem, pairs):
    """Two files; their names."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = stem.with_name(f"{stem.name}.en"), stem.with_name(f"{stem.name}.de")
    for path, texts in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return [str(path) for path in paths]


def recipe(files=None, **changes):
    values = {"data.holdout": 6, "subwords.size": 320}
    if files:
        values |= {"data.source": [files[0]], "data.target": [files[1]]}
    values |= {name.replace("__", "."): value for name, value in changes.items()}
    return read(None, list(values.items()))


def prepare(asked, tell=lambda what, done: None):
    return asked.task.prepare(asked, None, tell)


def is_joint(prepared):
    """Whether both sides have one vocabulary, and so the model one source and target size."""
    source, target = prepared.processors.values()
    assert prepared.sizes["vocab_size"] == len(target)
    assert prepared.sizes["source_vocab_size"] == (None if source is target else len(source))
    assert prepared.defaults == ({} if source is target else {"tied": "target"})
    return source is target


def texts(prepared):
    """The pairs of a corpus, decoded again."""
    sides = zip(prepared.processors.values(), (prepared.train.source, prepared.train.target), strict=True)
    spelled = [[part.decode(side[i].tolist()) for i in range(len(side))] for part, side in sides]
    return list(zip(*spelled, strict=True))


def held(prepared):
    return [(line.source, line.target) for line in prepared.valid]


def test_files_become_subwords_a_corpus_and_a_validation_set(files, cache):
    prepared = prepare(recipe(files))
    assert sorted(texts(prepared) + held(prepared)) == sorted(PAIRS)
    assert len(held(prepared)) == 6
    assert is_joint(prepared)
    assert list(prepared.processors) == ["source", "target"]
    assert len(prepared.processors["source"]) == 320
    assert {path.name.split("-")[0] for path in cache.iterdir()} == {"corpus", "subwords"}


def test_the_cache_is_where_the_environment_says(cache, monkeypatch):
    assert cache_folder() == cache
    monkeypatch.delenv("HEED_CACHE")
    monkeypatch.setenv("HOME", "/home/someone")
    assert str(cache_folder()) == "/home/someone/.cache/heed"


def test_what_was_prepared_is_used_again(files, cache, monkeypatch):
    first = prepare(recipe(files))
    times = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    for module, name in ((corpora, "build"), (Cleaning, "reasons"), (sentencepiece, "learn")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("this was done before"))
    second = prepare(recipe(files))
    assert (second.key, second.valid) == (first.key, first.valid)
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == times


def test_each_file_is_hashed_once(files, monkeypatch):
    hashed, plain = [], preparing.sha256
    monkeypatch.setattr(preparing, "sha256", lambda path: (hashed.append(path), plain(path))[1])
    prepare(recipe(files))
    assert len(hashed) == len({*hashed}) == 2


def test_the_same_content_elsewhere_is_the_same_data(files, tmp_path):
    assert prepare(recipe(files)).key == prepare(recipe(write(tmp_path / "elsewhere" / "other", PAIRS))).key


@pytest.mark.parametrize("new", [("something else", PAIRS[-1][1]), (PAIRS[-1][0], "etwas anderes")])
def test_another_content_on_either_side_is_other_data(files, tmp_path, new):
    first = prepare(recipe(files))
    write(tmp_path / "train", [*PAIRS[:-1], new])
    second = prepare(recipe(files))
    assert second.key != first.key
    assert new in texts(second) + held(second)


@pytest.mark.parametrize(
    "change",
    [
        {"filters__max_length": 99},
        {"filters__duplicates": False},
        {"data__holdout": 7},
        {"subwords__size": 310},
        {"subwords__kind": "unigram", "subwords__size": 300},
        {"subwords__joint": False, "subwords__size": 300},
        {"subwords__sampling": 0.1},
    ],
    ids=str,
)
def test_another_setting_of_the_data_is_other_data(files, change):
    assert prepare(recipe(files)).key != prepare(recipe(files, **change)).key


@pytest.mark.parametrize(
    "change", [{"training__steps": 5}, {"model__dim": 64}, {"filters__rejected": "rejected.tsv"}], ids=str
)
def test_other_settings_do_not_matter_to_it(files, change, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert prepare(recipe(files)).key == prepare(recipe(files, **change)).key


def test_data_are_known_by_the_name_that_the_version_with_few_filters_gave_them(files):
    def name(*parts):
        return hashlib.sha256(json.dumps([2, *parts], sort_keys=True).encode()).hexdigest()[:16]

    with_few = {"filters__overlap": False, "filters__swapped": False}
    prepared = prepare(recipe(files, **with_few))
    contents = [[hashlib.sha256(Path(path).read_bytes()).hexdigest()] for path in files]
    texts = name([*contents, []], [], True, 6, False)
    filters = {"max_length": 256, "max_ratio": 9.0, "same": True, "duplicates": True, "rejected": None}
    expected = name(texts, filters, [part.key() for part in prepared.processors.values()], False)
    assert prepared.earlier_keys == [expected]
    for change in ({}, with_few | {"filters__numbers": True}, with_few | {"filters__max_repeats": 3}):
        assert expected not in prepare(recipe(files, **change)).earlier_keys  # that version had trained on other pairs


def flipped(path):
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])


def zeroed(path):
    path.write_bytes(bytes(path.stat().st_size))


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def removed(path):
    path.unlink()


DAMAGES = [
    ("corpus-*/source.ids", flipped), ("corpus-*/source.ids", cut), ("corpus-*/target.offsets", zeroed), ("corpus-*/target.text", flipped),
    ("corpus-*/corpus.json", removed), ("corpus-*/corpus.json", cut), ("corpus-*/held-out.tsv", flipped), ("corpus-*/sums.json", zeroed),
    ("subwords-*/subwords.spm", cut), ("subwords-*/subwords.json", removed),
]  # fmt: skip


def told(asked):
    """The data, and the sentences for the user."""
    said = []
    return prepare(asked, lambda what, done: said.append(what) if done is None else None), said


def test_what_is_damaged_in_the_cache_is_prepared_again_and_that_is_told(files, cache):
    asked = recipe(files, subwords__sampling=0.1)
    key = prepare(asked).key
    expected = {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    for name, damage in DAMAGES:
        (path,) = cache.glob(name)
        damage(path)
        again, (sentence,) = told(asked)
        assert again.key == key
        assert sentence.startswith(f"{path.parent} is damaged (") and sentence.endswith("): preparing it again.")
        assert {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()} == expected, name


def test_a_corpus_of_an_earlier_version_is_opened_if_it_fits_together(files, cache):
    asked = recipe(files, subwords__sampling=0.1)
    first = texts(prepare(asked))
    (folder,) = cache.glob("corpus-*")
    (folder / "sums.json").unlink()
    again, (sentence,) = told(asked)
    assert texts(again) == first
    assert sentence == f"{folder} has no checksums, so it cannot be verified: remove it to prepare it again."
    for name, damage in (("target.offsets", zeroed), ("source.ids", cut), ("target.text.offsets", cut)):
        (folder / "sums.json").unlink(missing_ok=True)
        damage(folder / name)
        again, (_, sentence) = told(asked)
        assert texts(again) == first
        assert "is damaged (" in sentence


def test_another_filter_or_sampling_leaves_the_subwords_as_they_are(files, cache):
    for change in ({}, {"filters__max_ratio": 2.0}, {"subwords__sampling": 0.1}):
        prepare(recipe(files, **change))
    assert len(list(cache.glob("subwords-*"))) == 1
    assert len(list(cache.glob("corpus-*"))) == 3


def test_duplicates_are_found_across_files(files, tmp_path):
    again = write(tmp_path / "again", [PAIRS[3], ("new text", "neuer Text")])
    table = tmp_path / "more.tsv"
    table.write_text(f"id\t{PAIRS[5][1]}\t{PAIRS[5][0]}\nid\tnoch mehr\teven more\n", "utf-8")
    names = {"data__source": [files[0], again[0]], "data__target": [files[1], again[1]]}
    prepared = prepare(recipe(**names, data__tsv=[str(table)], data__columns=[3, 2]))
    assert prepared.train.report.taken["duplicate"] == 2
    assert prepared.train.report.read == len(PAIRS) + 4
    more = [("new text", "neuer Text"), ("even more", "noch mehr")]
    assert sorted(texts(prepared) + held(prepared)) == sorted(PAIRS + more)


def test_what_is_held_out_does_not_depend_on_the_order_of_the_lines(files, tmp_path):
    mixed = write(tmp_path / "mixed", random.Random(1).sample(PAIRS, len(PAIRS)))
    one, other = prepare(recipe(files)), prepare(recipe(mixed))
    assert sorted(held(one)) == sorted(held(other))
    assert sorted(texts(one)) == sorted(texts(other))


def test_with_validation_files_nothing_is_held_out(files, tmp_path):
    valid = write(tmp_path / "valid", [("one", "eins"), ("two", "zwei")])
    prepared = prepare(recipe(files, data__valid_source=[valid[0]], data__valid_target=[valid[1]]))
    assert held(prepared) == [("one", "eins"), ("two", "zwei")]
    assert sorted(texts(prepared)) == sorted(PAIRS)


def test_two_vocabularies_are_learned_each_from_its_side(files):
    prepared = prepare(recipe(files, subwords__joint=False, subwords__size=300))
    source, target = prepared.processors.values()
    assert not is_joint(prepared)
    assert "".join(source.pieces(source.encode(["나무"])[0])) == "▁나무"
    assert "<0x" in "".join(target.pieces(target.encode(["나무"])[0]))


def test_subwords_that_are_given_are_used(files, tmp_path, cache):
    own = sentencepiece.learn([text for pair in PAIRS for text in pair], sentencepiece.SubwordsConfig(), 300)
    own.save(tmp_path / "own.spm")
    prepared = prepare(recipe(files, subwords__source_model=str(tmp_path / "own.spm")))
    assert is_joint(prepared)
    assert prepared.processors["source"].model == own.model
    assert not list(cache.glob("subwords-*"))


def test_text_is_kept_where_subwords_are_sampled(files):
    assert prepare(recipe(files)).train.source.text is None
    prepared = prepare(recipe(files, subwords__sampling=0.1))
    assert [(prepared.train.source.text[0], prepared.train.target.text[0])] == texts(prepared)[:1]


def test_the_rejected_are_written_where_it_was_asked(tmp_path):
    files = write(tmp_path / "train", [*PAIRS, ("", "leer"), PAIRS[0]])
    for _ in range(2):  # the second time the corpus is there already
        out = tmp_path / "deep" / "rejected.tsv"
        prepare(recipe(files, filters__rejected=str(out)))
        rows = [line.split("\t")[:2] for line in out.read_text("utf-8").splitlines()[1:]]
        assert rows == [["empty", "train.en:65"], ["duplicate", "train.en:66"]]
        out.unlink()


FAULTS = {
    "empty": [("", "niemand")],
    "same": [("a name", "a name")],
    "duplicate": [PLAIN[7]],
    "overlap": [("The Old River sleeps!", "der alte Fluss schläft")],
    "reversed": [("Otto Karl", "Anna Maria")],
    "swapped": [PLAIN[11][::-1]],
    "repeats": [(f"{PLAIN[n][0]} and again", "Mehr dazu hier lesen.") for n in range(3)],
    "numbers": [("The doctor paints 1984 houses.", "Der Arzt malt 1985 Häuser.")],
    "punctuation": [("Who sees the child in the garden?", "Wer sieht das Kind im Garten????")],
    "length": [("the child likes the sea " * 12, "das Kind mag das Meer " * 12)],
    "ratio": [("the dog", "der Hund und die Schwester und der Arzt und der Lehrer und der Nachbar")],
}


def test_each_filter_names_the_lines_that_it_took(tmp_path):
    rows, wanted = [*PLAIN], set()
    targets = [target for _, target in rows]
    shifted = range(300, 330)  # targets of the next line
    rows[300:330] = [(rows[n][0], targets[n + 1]) for n in shifted]
    for rule, faults in FAULTS.items():
        rows += faults
        wanted.add((rule, f"train.en:{len(rows)}", *faults[-1]))
    files = write(tmp_path / "train", rows)
    valid = write(tmp_path / "valid", [("the old river sleeps", "der Fluss schweigt"), ("Anna Maria", "Otto Karl")])
    on = {"numbers": True, "max_punctuation": 2, "misaligned": True, "max_repeats": 2}
    on |= {"max_length": 40, "max_ratio": 4.0, "rejected": str(tmp_path / "rejected.tsv")}
    given = {"data__valid_source": [valid[0]], "data__valid_target": [valid[1]], "data__holdout": 0}
    given |= {"subwords__kind": "words", "subwords__size": 2000}
    report = prepare(recipe(files, **given, **{f"filters__{name}": value for name, value in on.items()})).train.report
    found = {tuple(line.split("\t")) for line in (tmp_path / "rejected.tsv").read_text("utf-8").splitlines()[1:]}
    assert {(rule, place, source.strip(), target.strip()) for rule, place, source, target in wanted} <= found
    rest = {
        (rule, int(place.partition(":")[2]))
        for rule, place, *_ in found
        if (rule, place) not in {w[:2] for w in wanted}
    }
    assert {rule for rule, _ in rest} == {"misaligned"} and {number - 1 for _, number in rest} <= {*range(299, 331)}
    assert len(rest) > 15
    taken = {rule: sum(row[0] == rule for row in found) for rule in RULES}
    assert report.taken == taken  # all of them are counted
    assert {rule for rule, count in taken.items() if not count} == {"language"}


def test_the_filter_of_languages_names_the_lines_that_it_took(tmp_path):
    # it comes before the others, and takes swapped pairs, too
    files = write(
        tmp_path / "train", [*PLAIN[:60], ("The neighbour finds a key.", "Tohle je velmi stará kniha o moři.")]
    )
    out = tmp_path / "rejected.tsv"
    prepare(recipe(files, filters__language=True, filters__rejected=str(out)))
    (row,) = [line.split("\t") for line in out.read_text("utf-8").splitlines()[1:]]
    assert row == ["language", "train.en:61", "The neighbour finds a key.", "Tohle je velmi stará kniha o moři."]


def test_packed_files_hold_the_same_pairs(files):
    packed = []
    for name in files:
        packed.append(f"{name}.gz")
        Path(f"{name}.gz").write_bytes(gzip.compress(Path(name).read_bytes()))
    assert sorted(texts(prepare(recipe(packed)))) == sorted(texts(prepare(recipe(files))))


def test_who_waits_is_told(files):
    told = []
    prepare(recipe(files), lambda what, done: told.append((what, done)))
    assert told == [
        ("counting", 0),
        ("learning subwords", 0),
        ("reading", 0),
        ("comparing", len(PAIRS)),
        ("encoding", len(PAIRS)),
    ]


def test_a_missing_file_is_named(files, tmp_path):
    with pytest.raises(ValueError, match=r"nowhere\.en: no such file"):
        prepare(recipe([str(tmp_path / "nowhere.en"), files[1]]))
    with pytest.raises(ValueError, match=r"data\.target is missing: translation needs pairs"):
        prepare(recipe(files, data__target=[]))


def test_the_phrasebook_is_written_once_and_read_like_any_files(monkeypatch, cache):
    calls = []

    def small(folder, *, train, test):
        calls.append((train, test))
        for part, some in (("train", PAIRS), ("valid", PAIRS[:5])):
            write(folder / part, some)
            (folder / f"{part}.de").rename(folder / f"{part}.ko")

    monkeypatch.setattr(phrasebook, "write", small)
    asked = read(None, [("data.phrasebook", 64), ("subwords.size", 320)])
    prepared = prepare(asked)
    assert sorted(texts(prepared)) == sorted((target, source) for source, target in PAIRS[5:])
    assert len(prepared.valid) == 5
    assert prepare(asked).key == prepared.key
    assert calls == [(64, 0)], "training needs no test pairs, and to draw them takes longest"
    for damage in (cut, removed):
        (path,) = cache.glob("phrasebook-*/train.ko")
        damage(path)
        again, (sentence,) = told(asked)
        assert (again.key, texts(again)) == (prepared.key, texts(prepared))
        assert f"{path.parent} is damaged (" in sentence
    (path.parent / "sums.json").unlink()  # as an earlier version wrote it
    cut(path)
    assert prepare(asked).key == prepared.key
    assert calls == [(64, 0)] * 4
    monkeypatch.setattr(phrasebook, "SOURCES", "of a changed generator")
    prepare(asked)
    assert calls == [(64, 0)] * 5
