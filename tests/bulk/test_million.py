"""bench.million: what it says of tenths, and that it notices what must not be."""

import json

import pytest
from bench import million
from bench.million import Journal, Sample, Watched, failures, parts

from heed.bulk import recorded
from heed.cli import translate
from heed.cli.main import main
from heed.data.staged import Chunk
from tests.bulk.killing import Killed


def test_tenths_add_up_to_the_whole():
    samples = [Sample(second, min(100, 5 * second), 50.0 + second) for second in range(21)]
    found = list(parts(Watched(20.5, samples=samples), 100))
    assert [own.lines for own in found] == list(range(10, 101, 10))
    assert [own.seconds for own in found] == list(range(2, 21, 2))
    assert {own.rate for own in found} == {5.0}
    assert [own.megabytes for own in found] == [52.0 + 2 * n for n in range(10)]
    sudden = list(parts(Watched(4.0, samples=[Sample(1.0, 0, 9.0), Sample(2.0, 55, 7.0)]), 100))
    assert [own.lines for own in sudden] == [55] * 5 + [100] * 5
    assert (sudden[0].rate, sudden[0].megabytes, sudden[-1].seconds) == (27.5, 9.0, 4.0)


def test_a_journal_is_read_on_from_where_it_was(tmp_path):
    file, journal = recorded.RecordedFile(tmp_path / "out", {}), Journal(tmp_path / "out")
    assert journal.read() == 0
    for number, items in enumerate((["a", "b"], ["c"])):
        file.append(Chunk(2 * number, items), b"x\n")
        assert journal.read() == 2 + number
    with open(journal.path, "ab") as half:
        half.write(b'{"inputs": 5')
    assert journal.read() == 3
    file.finish()
    assert journal.read() == 3


def facts(**changed):
    tenths = [{"megabytes": 100.0}] * 9 + [{"megabytes": changed.pop("megabytes", 150.0)}]
    found = {
        "lines": 30,
        "whole": {"sha256": "a", "lines": 30, "parts": tenths},
        "killed": {"killed": True, "lines": 12},
        "resumed": {"sha256": "a", "kept": 12},
    }
    for name, own in changed.items():
        found[name] |= own
    return found


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({}, None),
        ({"resumed": {"sha256": "b"}}, "the output of the run that was killed and resumed differs"),
        ({"whole": {"lines": 29}}, "30 lines were read, and 29 written"),
        ({"killed": {"killed": False}}, "the run ended before it could be killed: give more --lines"),
        ({"resumed": {"kept": 8}}, "12 lines were finished, and only 8 were kept"),
        ({"megabytes": 190.0}, "memory has grown from 100 MB in the second tenth to 190 MB in the last"),
    ],
)
def test_what_must_not_be_is_told(changed, says):
    assert failures(facts(**changed)) == ([says] if says else [])


def test_a_run_that_is_killed_and_resumed_has_the_same_output(translator_folder, tmp_path, monkeypatch, capsys):
    """The commands are run here instead of in processes of their own, and the second dies at its third block."""
    monkeypatch.setattr(translate, "CHUNK", 2)
    plain = recorded.RecordedFile.append

    def watch(words, out, every, chunk, stop=None):
        done = []

        def append(self, own, *rest):
            if stop is not None and stop(sum(done)):
                raise Killed
            done.append(len(own.items))
            plain(self, own, *rest)

        monkeypatch.setattr(recorded.RecordedFile, "append", append)
        if "--resume" in words:
            million.kept_by(out).write_text(str(Journal(out).read()), encoding="utf-8", newline="\n")
        try:
            assert main(words) == 0
        except Killed:
            return Watched(1.0, killed=True, samples=[Sample(1.0, sum(done), 10.0)])
        return Watched(1.0, samples=[Sample(1.0, sum(done), 10.0)])

    monkeypatch.setattr(million, "watch", watch)
    words = [str(translator_folder), "--lines", "12", "--folder", str(tmp_path), "--json", str(tmp_path / "json")]
    assert million.main([*words, "--options", "--engine torch --device cpu"]) == 0
    told = json.loads((tmp_path / "json").read_text("utf-8"))
    assert told["failures"] == [] and told["killed"]["lines"] == told["resumed"]["kept"] == 4
    assert "killed after 4 lines" in capsys.readouterr().out
