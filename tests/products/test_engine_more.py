"""CTranslate2 behind a translator, where processes fork and disks are for reading only."""

import dataclasses
import multiprocessing
import os
import sys
import warnings

import pytest

from heed.products.translator.engines import cache
from heed.products.translator.engines.ctranslate2 import CTranslate2
from tests.products.test_engine import SAME, TEXTS, made, search

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
GREEDY = dataclasses.replace(SAME, beam=1, nbest=1)
SOME = TEXTS[:3]


@pytest.fixture(scope="module")
def one():
    return made("one")


@pytest.mark.parametrize("translates", [True, False])
def test_a_child_of_a_process_that_has_translated_translates_and_ends(one, translates):
    fast = CTranslate2(one.bundle, "float32")
    before = [h[0].tokens for h in search(fast, GREEDY, SOME)]
    ours, theirs = multiprocessing.Pipe()

    def child():
        for _ in range(2):
            theirs.send([h[0].tokens for h in search(fast, GREEDY, SOME)] if translates else before)
        fast.shared.pools = {}  # as at the end of a program

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
    try:
        for _ in range(2):
            assert ours.poll(60), "the child hangs"
            assert ours.recv() == before
        process.join(60)
        assert process.exitcode == 0
    finally:
        process.kill()
    assert [h[0].tokens for h in search(fast, GREEDY, SOME)] == before


def test_a_cache_that_is_for_reading_only_is_read(one, monkeypatch, tmp_path):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    first = search(CTranslate2(one.bundle), GREEDY, SOME)

    def refuse(*args):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(cache.ctranslate2, "write_model", refuse)
    assert search(CTranslate2(one.bundle, required=True), GREEDY, SOME) == first
