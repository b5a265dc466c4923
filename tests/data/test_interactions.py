"""Interaction logs: formats, what is left out, and what is held out."""

import builtins
import gzip
import json
import os
import re
import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

from heed import files
from heed.data.interactions import log as logs
from heed.data.interactions.config import InteractionsConfig
from heed.data.interactions.evaluation import read_held
from heed.data.interactions.files import find_format
from heed.data.interactions.prepare import PreparedLog, prepare
from heed.data.interactions.split import ranked_time
from heed.evaluation.item_baselines import ItemKNN
from heed.evaluation.ranking import rank
from heed.vocabularies.histories import Histories
from heed.vocabularies.items import Items


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))


def config(path, text, **settings):
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return InteractionsConfig([str(path)], **{"core": 0, **settings})


def told(config):
    """The log as a user reads it: each user's items in order."""
    found: dict = {}
    with logs.open_log(config) as log:
        for user, (start, end) in enumerate(pairwise(log.starts)):
            found[log.user_names[user]] = [log.item_names[item] for item in log.items[start:end]]
        return found, log.counts


SAME = {
    "log.csv": "user_id,item_id,rating,timestamp\nu1,a,5,10\nu2,b,1,11\nu1,c,4,30\nu1,b,3,20\n",
    "log.tsv": "timestamp\tuserId\titemId\trating\n10\tu1\ta\t5\n11\tu2\tb\t1\n30\tu1\tc\t4\n20\tu1\tb\t3\n",
    "ratings.dat": "u1::a::5::10\nu2::b::1::11\nu1::c::4::30\nu1::b::3::20\n",
    "dates.csv": "user,item,date\nu1,a,2024-01-01\nu2,b,2024-01-02\nu1,c,2024-03-01T10:00:00\nu1,b,2024-02-01\n",
    "users.txt": "u1 a b c\nu2 b\n",
    "pairs.txt": "u1 a\nu2 b\nu1 b\nu1 c\n",
}


@pytest.mark.parametrize("name", SAME)
def test_one_log_in_every_format_is_the_same(name, tmp_path):
    found, _ = told(config(tmp_path / name, SAME[name]))
    assert found == {"u1": ["a", "b", "c"], "u2": ["b"]}


def test_a_parquet_log_is_the_same_or_needs_pyarrow(tmp_path, monkeypatch):
    path, real = tmp_path / "log.parquet", builtins.__import__
    path.write_bytes(b"PAR1")

    def refuse(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    with (
        monkeypatch.context() as patched,
        pytest.raises(ValueError, match="is a Parquet file, which needs pyarrow: install it"),
    ):
        patched.setattr(builtins, "__import__", refuse)
        told(InteractionsConfig([str(path)]))
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    columns = {"user": ["u1", "u2", "u1", "u1"], "item": ["a", "b", "c", "b"], "time": [10, 11, 30, 20]}
    parquet.write_table(pyarrow.table(columns), path)
    assert told(InteractionsConfig([str(path)], core=0))[0] == {"u1": ["a", "b", "c"], "u2": ["b"]}


def test_columns_may_be_named_and_numbered_and_ratings_filtered(tmp_path):
    text = "who,what,stars,when\nu1,a,5,3\nu1,b,2,1\nu1,c,3,2\n"
    named = {"user": "who", "item": "what", "time": "when", "rating": "stars", "min_rating": 3.0}
    found, counts = told(config(tmp_path / "log.csv", text, **named))
    assert found == {"u1": ["c", "a"]} and counts["rated lower"] == 1 and counts["read"] == 3
    assert counts["out of order"] == 1
    bare = text.split("\n", 1)[1]
    found, _ = told(config(tmp_path / "bare.csv", bare, user=1, item=2, time=4))
    assert found == {"u1": ["b", "c", "a"]}


@pytest.mark.parametrize(
    ("rule", "left"),
    [("keep", "aabaa"), ("exact", "abaa"), ("consecutive", "aba"), ("first", "ab")],
)
def test_duplicates_are_left_out_by_a_rule_and_counted(rule, left, tmp_path):
    rows = [("a", 1), ("a", 1), ("b", 2), ("a", 3), ("a", 4)]
    text = "user,item,time\n" + "".join(f"u,{item},{time}\n" for item, time in rows)
    found, counts = told(config(tmp_path / "log.csv", text, duplicates=rule))
    assert "".join(found["u"]) == left and counts["duplicates"] == 5 - len(left)


def test_the_core_is_what_a_plain_loop_leaves(tmp_path):
    random = np.random.default_rng(0)
    users, items = random.integers(0, 40, 300), random.integers(0, 45, 300) * random.integers(0, 2, 300)
    pairs = list(zip(users.tolist(), items.tolist(), strict=True))
    kept = list(range(300))
    while True:
        one, other = (Counter(pairs[i][side] for i in kept) for side in (0, 1))
        left = [i for i in kept if one[pairs[i][0]] >= 5 and other[pairs[i][1]] >= 5]
        if left == kept:
            break
        kept = left
    text = "".join(f"u{user} i{item}\n" for user, item in pairs)
    with logs.open_log(config(tmp_path / "log.txt", text)) as log:
        left = logs.core(log, 5)
        names = [
            (log.user_names[block.first + block.users[i]], log.item_names[block.items[i]])
            for block in log.blocks()
            for i in np.flatnonzero(left.inside(block))
        ]
    assert 0 < len(kept) < 250
    assert sorted(names) == sorted((f"u{pairs[i][0]}", f"i{pairs[i][1]}") for i in kept)


def test_leave_one_out_holds_out_the_last_two_of_each_user(tmp_path):
    key, log = prepare(config(tmp_path / "log.txt", "u1 a b c d\nu2 b c\nu3 c a b\nu4 d\n"), lambda *_: None)
    names = log.items.names
    assert [[names[i] for i in row] for row in log.histories.training()] == [["a", "b"], ["b", "c"], ["c"], ["d"]]
    for part, expected in (
        ("valid", {"u1": ("ab", "c"), "u3": ("c", "a")}),
        ("test", {"u1": ("abc", "d"), "u3": ("ca", "b")}),
    ):
        held = log.histories.held(part)
        told = {
            log.histories.names[user]: ("".join(names[i] for i in row), names[target])
            for user, row, target in zip(held.users, held.histories, held.targets, strict=True)
        }
        assert told == expected
    assert [names[i] for i in log.histories.history("u3")] == ["c", "a", "b"]
    assert "5 interactions" not in log.summary() and "of 10 that were read" in log.summary()
    assert (
        len(log) == 4 and prepare(config(tmp_path / "log.txt", "u1 a b c d\nu2 b c\nu3 c a b\nu4 d\n"), None)[0] == key
    )


def timed(rows):
    return "user,item,time\n" + "".join(f"{user},{item},{time}\n" for user, item, time in rows)


def test_a_split_by_time_trains_on_the_past_alone(tmp_path):
    rows = [
        ("u1", "a", 1),
        ("u1", "b", 2),
        ("u2", "b", 3),
        ("u2", "a", 4),
        ("u1", "x", 11),
        ("u2", "b", 12),
        ("u3", "a", 13),
    ]
    rows += [("u1", "b", 21), ("u3", "y", 22), ("u3", "b", 23), ("u4", "a", 24)]
    settings = {"split": "time", "valid_from": "10", "test_from": "20"}
    _, log = prepare(config(tmp_path / "log.csv", timed(rows), **settings), lambda *_: None)
    names = [*log.items.names, "(new)"]
    assert sorted(log.items.names) == ["a", "b"]  # x and y are not known yet
    assert [[names[i] for i in row] for row in log.histories.training()] == [["a", "b"], ["b", "a"], [], []]
    held = {part: log.histories.held(part) for part in ("valid", "test")}
    found = {
        part: [
            (log.histories.names[u], "".join(names[i] for i in row), names[t]) for u, row, t in zip(*own, strict=True)
        ]
        for part, own in held.items()
    }
    assert found["valid"] == [("u1", "ab", "(new)"), ("u2", "ba", "b")]
    assert found["test"] == [("u1", "ab", "b"), ("u3", "a", "(new)")]
    assert (
        log.facts["counts"]["new items valid_at"] == 1
        and "split by time (validation from 10, test from 20)" in log.split_summary()
    )


def test_a_planted_leak_is_caught_by_the_split_by_time(tmp_path):
    """From time 100 on, y follows x; before, never. Who knows others' future finds y; the past does not tell it."""
    rows = [(f"old{i}", item, i + place) for i in range(20) for place, item in enumerate("abcd"[i % 3 :] + "x")]
    rows += [
        (f"new{i}", item, 90 + 30 * (place > 0) + i)
        for i in range(30)
        for place, item in enumerate("xyab"[:3] + "cd"[: i % 2])
    ]
    found = {}
    for how in ("leave-one-out", "time"):
        more = {"valid_from": "100", "test_from": "110"} if how == "time" else {}
        text = timed(
            [*rows, *((f"late{i}", item, 95 + 10 * place) for i in range(10) for place, item in enumerate("bxy"))]
        )
        _, log = prepare(config(tmp_path / f"{how}.csv", text, split=how, **more), lambda *_: None)
        held, y = log.histories.held("test"), log.items.ids.get("y", -1)
        knn = ItemKNN(log.histories.training(), len(log.items))
        asked = [n for n, u in enumerate(held.users) if log.histories.names[u].startswith("late")]
        found[how] = rank(knn, held, len(log.items)).ranks[asked], held.targets[asked].tolist(), y
    assert (found["leave-one-out"][0] <= 2).all() and set(found["leave-one-out"][1]) == {found["leave-one-out"][2]}
    assert found["time"][2] == -1 and np.isinf(found["time"][0]).all()


def test_a_damaged_log_in_the_cache_is_prepared_again(tmp_path):
    given, said = config(tmp_path / "log.txt", "u1 a b c d\nu3 c a b\n"), []
    _, log = prepare(given, lambda what, done: None)
    before, path = log.histories.history("u1"), log.folder / "items.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x07")
    _, again = prepare(given, lambda what, done: said.append(what) if done is None else None)
    assert "is damaged (items.npy has changed since it was written): preparing it again" in said[0]
    assert again.histories.history("u1") == before
    assert isinstance(again, PreparedLog) and json.loads((again.folder / "log.json").read_text())["items"] == 4


def test_names_and_histories_survive_a_model_folder(tmp_path):
    _, log = prepare(config(tmp_path / "log.csv", "user,item\nÄnne,soap bar\nÄnne,b\nÄnne,c\n"), lambda *_: None)
    facts = log.items.write(tmp_path), log.histories.write(tmp_path)
    items, histories = (kind.read(tmp_path, own, "x") for kind, own in zip((Items, Histories), facts, strict=True))
    assert items.names == log.items.names and histories.names == ["Änne"]
    assert histories.history("Änne") == log.histories.history("Änne")
    assert histories.held("test").targets.tolist() == log.histories.held("test").targets.tolist()
    (tmp_path / "items.txt").write_text("other\n")
    with pytest.raises(ValueError, match=r"items\.txt is damaged or belongs to another model"):
        Items.read(tmp_path, facts[0], "x")


@pytest.mark.parametrize(
    ("name", "text", "settings", "says"),
    [
        ("log.csv", "user,item,time\nu,a,soon\n", {}, "log.csv, line 2: 'soon' is not a time; it must be a number, or a date"),
        ("log.csv", "user,item,time\nu,a,nan\n", {}, "line 2: 'nan' is not a time"),
        ("log.csv", "user,item,time\nu,,3\n", {}, "line 2: the item is ''; it must be a name"),
        ("log.csv", "user,item,time\nu,a\n", {}, "line 2 has 2 columns; it must have at least 3"),
        ("log.csv", "who,what\nu,a\n", {"user": "name"}, "has no column 'name' (data.user); its header has who, what"),
        ("log.csv", "user,item\nu,a\n", {"min_rating": 3.0}, "has no ratings, which data.min_rating needs"),
        ("log.csv", "user,item,rating\nu,a,good\n", {"min_rating": 3.0}, "line 2: the rating is 'good'; it must be a number"),
        ("log.csv", "user,item,rating\nu,a,1\n", {"min_rating": 3.0}, "no interaction is rated 3 or higher"),
        ("log.csv", 'user,item\nu,"' + "a" * 140_000, {}, "line 2 cannot be read: field larger than field limit"),
        ("log.txt", "u1 a b c\nu2\n", {}, "line 2 has no items"),
        ("log.txt", "u1 a\nu2 b\n", {}, "no user has 3 interactions"),
        ("log.txt", "u1 a b c\nu2 b a d\n", {"core": 5}, "no interaction is left to train on: of 6, none has a user and an item with 5"),
        ("log.txt", "u1 a b c\n", {"split": "time"}, "data.split is 'time', but the log has no times"),
        ("log.csv", "user,item,time\nu,a,1\nu,b,1\nu,c,1\n", {"split": "time"}, "the times of the log, from 1 to 1, cannot be split"),
        ("log.csv", "user,item,time\nu,a,1\nv,b,5\nw,c,9\n", {"split": "time", "valid_from": "4", "test_from": "8"}, "no user has interactions both before and after the time of validation"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_log_is_said_in_a_sentence(name, text, settings, says, tmp_path):
    with pytest.raises(ValueError, match=re.escape(says)):
        prepare(config(tmp_path / name, text, **settings), lambda *_: None)


def test_files_with_and_without_times_are_not_one_log(tmp_path):
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    paths[0].write_text("user,item,time\nu,a,1\n")
    paths[1].write_text("user,item\nu,a\n")
    with pytest.raises(ValueError, match=r"a\.csv has times and .*b\.csv has none: they cannot be sorted together"):
        told(InteractionsConfig([str(path) for path in paths]))


def test_a_log_without_a_known_item_is_refused(tmp_path):
    (tmp_path / "other.csv").write_text("user,item\nu,x\nu,y\n")
    with pytest.raises(
        ValueError,
        match="have no items in common: of the log's 2 items, such as x, none is one of the model's 2, such as a",
    ):
        read_held(tmp_path / "other.csv", Items(["a", "b"]), {})
    (tmp_path / "some.csv").write_text("user,item\nu,x\nu,b\nu,a\nv,y\nv,a\nw,a\n")
    held = read_held(tmp_path / "some.csv", Items(["a", "b"]), {})
    assert [row.tolist() for row in held.histories] == [[1], []] and held.targets.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"interactions": []}, "data.interactions is empty"),
        ({"user": 0}, "data.user is 0; it must be a number, counted from 1, or a name"),
        ({"core": -1}, "data.core is -1"),
        ({"valid_share": 0.6, "test_share": 0.5}, "data.valid_share and data.test_share are 1.1 together"),
        ({"test_share": 0.0}, "data.test_share is 0.0; it must be above 0 and below 1"),
        ({"valid_from": "2"}, "data.valid_from is for data.split = 'time'"),
        ({"split": "time", "valid_from": "2"}, "data.valid_from is set on its own"),
        (
            {"split": "time", "valid_from": "3", "test_from": "2"},
            "data.valid_from is 3; it must be before data.test_from, 2",
        ),
        ({"split": "time", "valid_from": "soon", "test_from": "2"}, "data.valid_from: 'soon' is not a time"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        InteractionsConfig(**{"interactions": ["log.csv"], **settings})


def test_the_format_is_told_by_the_name_and_the_first_lines(tmp_path):
    for name, text, kind in (("a.txt", "1 2 3\n4 5\n", "users"), ("b.txt", "1 2\n", "pairs"), ("c.dat", "1::2\n", "::"),
                             ("d.txt.gz", "1\t2\n", "tsv"), ("e", "1,2\n", "csv"), ("f.parquet", "", "parquet")):  # fmt: skip
        config(tmp_path / name, text)
        assert find_format(tmp_path / name, "auto") == kind
    assert find_format(tmp_path / "b.txt", "users") == "users"


def drawn_log(users, rows, items, seed=0):
    """Many repeats, times that go back, and ties."""
    random = np.random.default_rng(seed)
    who, what = random.integers(0, users, rows), random.integers(0, items, rows) * random.integers(0, 2, rows)
    when = random.integers(-50, 50, rows) / 4
    return timed((f"u{u}", f"i{i}", t) for u, i, t in zip(who, what, when, strict=True))


@pytest.mark.parametrize(
    "settings",
    [
        {"duplicates": "exact"},
        {"duplicates": "first", "core": 3},
        {"duplicates": "consecutive", "core": 5},
        {"duplicates": "keep", "split": "time"},
        {"core": 4, "split": "time", "valid_share": 0.2, "test_share": 0.3},
        {"core": 2, "split": "time", "valid_from": "-2.5", "test_from": "3"},
    ],
)
def test_a_log_in_many_blocks_is_prepared_as_in_one(settings, tmp_path, monkeypatch):
    given = config(tmp_path / "log.csv", drawn_log(30, 600, 40), **settings)
    found = []
    for rows, chunk in ((logs.ROWS, logs.CHUNK), (25, 7)):
        monkeypatch.setenv("HEED_CACHE", str(tmp_path / f"cache-{rows}"))
        monkeypatch.setattr(logs, "ROWS", rows)
        monkeypatch.setattr(logs, "CHUNK", chunk)
        _, log = prepare(given, lambda *_: None)
        found.append({path.name: path.read_bytes() for path in log.folder.iterdir()})
        assert list(log.folder.parent.iterdir()) == [log.folder], "nothing else is left in the cache"
    assert found[0] == found[1] and len(found[0]) == 9


def test_times_areranked_time_as_by_sorting(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "ROWS", 25)
    with logs.open_log(config(tmp_path / "log.csv", drawn_log(10, 200, 5), duplicates="keep")) as log:
        ranks = [0, 1, 57, 99, 100, 101, 163, 199]
        assert [ranked_time(log, rank) for rank in ranks] == np.sort(log.times)[ranks].tolist()


def test_preparing_takes_the_memory_of_a_block_not_of_the_log(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "CHUNK", 200)
    # each thread that hashes has a buffer of 256 KiB; how many do at once is chance
    monkeypatch.setattr(files, "ThreadPoolExecutor", lambda _: ThreadPoolExecutor(1))

    def peak(interactions, rows):
        monkeypatch.setattr(logs, "ROWS", rows)
        monkeypatch.setenv("HEED_CACHE", str(tmp_path / f"cache-{interactions}-{rows}"))
        given = config(tmp_path / f"{interactions}-{rows}.csv", drawn_log(100, interactions, 50), core=2)
        tracemalloc.start()
        try:
            prepare(given, lambda *_: None)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    whole, blocks = ((peak(15_000, rows) - peak(5_000, rows)) / 10_000 for rows in (1 << 22, 300))
    assert whole > 40 and blocks < 8, "bytes for each interaction more"


def test_what_is_not_in_the_core_is_no_item_of_the_model(tmp_path):
    text = "".join(f"u{i} a b c d e\n" for i in range(6)) + "x rare\n"
    _, log = prepare(config(tmp_path / "log.txt", text, core=5), lambda *_: None)
    assert sorted(log.items.names) == list("abcde") and "x" not in log.histories.names
    assert (log.facts["counts"]["items left out"], log.facts["counts"]["users left out"]) == (1, 1)
    assert log.histories.counts().tolist() == np.bincount(log.histories.training().ids, minlength=5).tolist()


def test_what_is_read_is_trained_on_held_out_or_counted_as_dropped(tmp_path):
    text = "user,item,rating\n" + "".join(f"u{user},{item},5\n" for user in range(4) for item in "abcde")
    text += "u0,rare,5\nu1,other,5\nnew,a,5\nu0,a,5\nu0,b,1\n"
    own = config(tmp_path / "log.csv", text, core=3, min_rating=2.0, duplicates="first")
    _, log = prepare(own, lambda *_: None)
    assert "of 25 that were read" in log.summary()
    for part in (", 1 rated below", ", 1 repeats dropped", ", 3 of rare users or items dropped"):
        assert part in log.summary()
    held = sum(len(log.histories.held(part).targets) for part in ("valid", "test"))
    assert log.facts["interactions"] + held == 25 - 1 - 1 - 3


@pytest.mark.skipif(files.WINDOWS, reason="it leaves files of killed processes")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of threads in the parent
def test_arrays_of_a_killed_preparation_are_removed_by_the_next_one(tmp_path, monkeypatch):
    """Even if that is of another log."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("HEED_CACHE", str(cache))
    made, other = tmp_path / "log.csv", tmp_path / "other.csv"
    for path, users in ((made, 6), (other, 7)):
        rows = "".join(f"u{user},i{item},{item}\n" for user in range(users) for item in range(5))
        path.write_text(f"user,item,time\n{rows}", "utf-8", newline="\n")

    def tell(what, done):
        if what == "splitting interactions":
            os._exit(9)

    child = os.fork()
    if not child:
        try:
            prepare(InteractionsConfig([str(made)], core=0), tell)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()) > 0
    key, _ = prepare(InteractionsConfig([str(other)], core=0), lambda what, done: None)
    assert [path.name for path in cache.iterdir()] == [f"interactions-{key}"]
