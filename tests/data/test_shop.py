"""The small shop: customers buy by its rules, and the log is what they bought."""

import csv
from collections import Counter
from itertools import groupby, pairwise

import numpy as np
import pytest

from heed.cli.main import main
from heed.data.synthetic import shop

FIRST = [
    ("1", "bird house", "2025-09-13T03:28:00"),
    ("1", "ladder", "2025-09-13T03:31:00"),
    ("1", "bird seed", "2025-09-13T03:35:00"),
    ("1", "bird bath", "2025-09-13T03:39:00"),
]


@pytest.fixture(scope="module")
def bought():
    """The things of each customer, in order."""
    found = shop.purchases(400, seed=3)
    return {user: [one.item for one in own] for user, own in groupby(found, key=lambda one: one.user)}


def test_the_first_purchases_do_not_change():
    assert [(one.user, one.item, one.time.isoformat()) for one in list(shop.purchases(2))[:4]] == FIRST


def test_a_customer_depends_on_the_seed_and_the_number_alone():
    few, many = list(shop.purchases(3, seed=5)), list(shop.purchases(9, seed=5))
    assert few == many[: len(few)] and few != list(shop.purchases(3, seed=6))
    assert all(one.time <= other.time for one, other in pairwise(few) if one.user == other.user)


def test_no_thing_is_of_two_projects():
    things = [thing for own in shop.projects().values() for project in own for thing in project] + list(shop.STAPLES)
    assert max(Counter(things).values()) == 1 and len(things) > 250
    assert all(len(own) >= shop.PROJECTS[1] and min(map(len, own)) >= 6 for own in shop.projects().values())
    assert all(thing == thing.strip() and "," not in thing for thing in things)


def test_things_are_bought_in_the_order_of_their_project_and_once(bought):
    known, shares = shop.projects(), np.zeros(2)
    place = {t: (name, p, i) for name, own in known.items() for p, one in enumerate(own) for i, t in enumerate(one)}
    counts, at_home = Counter(), []
    for things in bought.values():
        own = [place[thing] for thing in things if thing in place]
        by_project = Counter(one[:2] for one in own)
        shares += [sum(len(known[name][number]) for name, number in by_project), len(own)]
        counts[len(by_project)] += 1
        for project in by_project:
            steps = [one[2] for one in own if one[:2] == project]
            assert steps == sorted(set(steps)) and len(steps) >= 2
        departments = Counter(name for name, _ in by_project)
        at_home.append(sum(sorted(departments.values())[-2:]) / sum(departments.values()))
    assert set(counts) == {2, 3, 4, 5} and min(counts.values()) > 60
    assert sum(at_home) / len(at_home) > shop.AT_HOME
    wanted, taken = shares
    assert 0.83 < taken / wanted < 0.87, "of a project not all is bought, but most"
    staples = sum(thing in shop.STAPLES for own in bought.values() for thing in own)
    assert 0.06 < staples / (sum(map(len, bought.values())) - staples) < 0.10


def test_the_log_has_what_was_bought_in_the_order_of_time(tmp_path, capsys):
    assert main(["phrasebook", "--shop", "--out", str(tmp_path / "shop"), "--train", "20", "--seed", "3"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "shop" / "log.csv")
    with (tmp_path / "shop" / "log.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    expected = sorted((one.user, one.time.isoformat(), one.item) for one in shop.purchases(20, seed=3))
    assert sorted((row["user"], row["time"], row["item"]) for row in rows) == expected


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--world"], "--world and --shop are different corpora: write each with its own command"),
        (["--join", "2"], "--join is for sentences: leave it out with --shop"),
        (["--train", "0"], "--train is 0; it must be at least 1"),
    ],
)
def test_what_does_not_go_together_is_said(words, says, tmp_path, capsys):
    assert main(["phrasebook", "--shop", "--out", str(tmp_path / "out"), *words]) == 1
    assert says in capsys.readouterr().err and not (tmp_path / "out").exists()
