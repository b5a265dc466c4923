"""heed backtranslate: text in the target language to pairs, in one go or in several."""

import json

import pytest

from heed.bulk import recorded
from heed.files import exclusive
from heed.loading import load
from heed.runs import backtranslate
from tests import fixed_pairs

SEARCHES = {"beam": ["--beam", "2"], "sampling": ["--sample", "--top-k", "5", "--temperature", "0.8", "--seed", "3"]}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(backtranslate, "BLOCK", 8)


@pytest.fixture
def mono(tmp_path):
    """Text of 30 lines, of which two are empty and one is too long; one has a tab."""
    lines = [pair.source for pair in fixed_pairs.pairs("test", 60) if len(pair.source) < 24][:26]
    lines[10:10] = ["", "나는 " * 200, "  "]
    lines[20] = "안녕\t안녕."
    path = tmp_path / "mono.ko"
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def killed_after(blocks, monkeypatch):
    """As if the process were killed while it writes a block: half of it is on the disk."""
    written, append = [], recorded.RecordedFile.append

    def stop(self, chunk, data, note=None):
        if len(written) == blocks:
            with open(self.part, "ab") as file:
                file.write(data[: len(data) // 2])
            raise KeyboardInterrupt
        written.append(chunk)
        append(self, chunk, data, note)

    monkeypatch.setattr(recorded.RecordedFile, "append", stop)
    return lambda: monkeypatch.setattr(recorded.RecordedFile, "append", append)


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_interrupted_and_continued_it_is_the_same_file(heed, trained, mono, tmp_path, monkeypatch, search):
    code, _, err = heed("backtranslate", trained, mono, "--out", tmp_path / "whole.tsv", *search)
    assert code == 0
    assert "26 pairs of 29 lines; skipped: 2 empty, 1 too long for the model." in err
    out = tmp_path / "broken.tsv"
    for blocks in (1, 0, 2):
        restore = killed_after(blocks, monkeypatch)
        code, _, err = heed("backtranslate", trained, mono, "--out", out, *search)
        assert code == 130 and "Run the same command to continue." in err
        assert not out.exists() and (tmp_path / "broken.tsv.part").is_file()
        restore()
    code, _, err = heed("backtranslate", trained, mono, "--out", out, *search)
    assert code == 0 and "26 pairs of 29 lines; skipped: 2 empty, 1 too long for the model." in err
    assert out.read_bytes() == (tmp_path / "whole.tsv").read_bytes()
    assert [path.name for path in tmp_path.iterdir() if "broken" in path.name] == ["broken.tsv"], "nothing else stays"


def test_a_translation_that_is_damaged_is_made_again(heed, trained, mono, tmp_path, monkeypatch):
    out, words = tmp_path / "out.tsv", ["backtranslate", trained, mono, "--beam", "1", "--quiet"]
    assert heed(*words, "--out", tmp_path / "whole.tsv")[0] == 0
    restore = killed_after(2, monkeypatch)
    assert heed(*words, "--out", out)[0] == 130
    restore()
    part = tmp_path / "out.tsv.part"
    lines = part.read_bytes().split(b"\n")
    lines[9] = b"x" + lines[9]  # in the second block of eight
    part.write_bytes(b"\n".join(lines))
    code, _, err = heed(*words, "--out", out)
    size = len(b"\n".join(lines[:8])) + 1
    assert (code, err) == (0, f"{part} is damaged after {size:,} bytes: continuing from there.")
    assert out.read_bytes() == (tmp_path / "whole.tsv").read_bytes()


def test_the_pairs_are_the_translations_and_their_texts(heed, trained, mono, tmp_path):
    heed("backtranslate", trained, mono, "--out", tmp_path / "out.tsv", "--tag", "<bt>")
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text("utf-8").splitlines()]
    texts = [line.replace("\t", " ") for line in mono.read_text("utf-8").splitlines() if 0 < len(line.strip()) < 500]
    assert [target for _, target in rows] == texts
    found = [own.text for start in range(0, 26, 8) for own in load(trained).translate(texts[start : start + 8])]
    assert [source for source, _ in rows] == [f"<bt> {text}" for text in found]


def test_samples_of_equal_lines_differ(heed, trained, tmp_path):
    mono = tmp_path / "mono.ko"
    mono.write_text("나는 책을 읽어요.\n" * 16, "utf-8")
    heed("backtranslate", trained, mono, "--out", tmp_path / "out.tsv", "--sample")
    assert len(set((tmp_path / "out.tsv").read_text("utf-8").splitlines())) == 16


def test_a_file_is_continued_with_what_it_was_begun_with(heed, trained, mono, tmp_path, monkeypatch):
    out, words = tmp_path / "out.tsv", ["backtranslate", trained, mono, "--out", tmp_path / "out.tsv", "--beam", "2"]
    restore = killed_after(1, monkeypatch)
    assert heed(*words)[0] == 130
    restore()
    code, _, err = heed(*words, "--tag", "<bt>")
    assert code == 1 and "out.tsv.part was started with tag '', which is now '<bt>': restore that" in err
    journal = tmp_path / "out.tsv.part.journal"
    before = journal.read_text("utf-8")
    first, rest = before.split("\n", 1)
    journal.write_text(f"{json.dumps({**json.loads(first), 'weights': ['0']})}\n{rest}", "utf-8")
    assert "was started with other weights: restore that" in heed(*words)[2]
    journal.write_text(before, "utf-8")
    text = mono.read_text("utf-8")
    mono.write_text("안녕.\n" + text, "utf-8")
    code, _, err = heed(*words)
    assert (
        code == 1 and "the input has changed from line 1 on since" in err and "or remove the file to start again" in err
    )
    mono.write_text(text, "utf-8")
    assert heed(*words)[0] == 0 and out.is_file()
    code, _, err = heed(*words)
    assert code == 1 and f"{out} already exists: choose another --out" in err


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_it_goes_on_in_the_blocks_that_it_was_begun_with(heed, trained, mono, tmp_path, monkeypatch, search):
    """As one does that was begun on a GPU, or by a version with others; the seeds of samples are those of these blocks."""
    words = ["backtranslate", trained, mono, *search, "--quiet"]
    assert heed(*words, "--out", tmp_path / "whole.tsv")[0] == 0
    restore = killed_after(1, monkeypatch)
    assert heed(*words, "--out", tmp_path / "out.tsv")[0] == 130
    restore()
    monkeypatch.setattr(backtranslate, "BLOCK", 5)
    assert heed(*words, "--out", tmp_path / "out.tsv")[0] == 0
    assert (tmp_path / "out.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()


def test_what_an_earlier_version_has_begun_is_not_thrown_away(heed, trained, mono, tmp_path):
    for name in ("out.tsv.part", "out.tsv.part.blocks.json"):
        (tmp_path / name).write_text("{}\n", encoding="utf-8", newline="\n")
    code, _, err = heed("backtranslate", trained, mono, "--out", tmp_path / "out.tsv")
    assert (
        code == 1
        and "out.tsv.part was started by an earlier version of heed: finish it with that version, or remove it" in err
    )
    assert (tmp_path / "out.tsv.part").is_file()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--top-k", "5"], "--top-k is for sampling: add --sample"),
        (["--tag", "a b"], "--tag is 'a b'; it must be one word, such as <bt>"),
    ],
)
def test_what_cannot_be_is_refused(heed, trained, mono, tmp_path, words, says):
    code, _, err = heed("backtranslate", trained, mono, "--out", tmp_path / "out.tsv", *words)
    assert code == 1 and says in err


def test_a_text_without_a_line_to_translate_is_refused_and_leaves_nothing(heed, trained, tmp_path):
    (tmp_path / "mono.ko").write_text("\n \n", "utf-8")
    code, _, err = heed("backtranslate", trained, tmp_path / "mono.ko", "--out", tmp_path / "out.tsv")
    assert code == 1 and "has no lines to translate: 0 pairs of 2 lines; skipped: 2 empty." in err
    assert not list(tmp_path.glob("*out.tsv*"))


def test_two_at_once_are_refused(heed, trained, mono, tmp_path, monkeypatch):
    def refuse(path, refusal):
        raise ValueError(refusal)

    monkeypatch.setattr(recorded, "exclusive", refuse)  # a process does not exclude itself
    code, _, err = heed("backtranslate", trained, mono, "--out", tmp_path / "out.tsv")
    assert code == 1 and "out.tsv.part is being written by another process" in err
    with exclusive(tmp_path / "lock", ""):
        assert (tmp_path / "lock").is_file()


def test_a_model_for_the_same_direction_is_warned_of(heed, trained, mono, tmp_path):
    few = ["--beam", "1", "--out"]
    assert "Warning" not in heed("backtranslate", trained, mono, *few, tmp_path / "right.tsv")[2]
    other = mono.rename(tmp_path / "mono.en")
    code, _, err = heed("backtranslate", trained, other, *few, tmp_path / "wrong.tsv")
    assert code == 0 and "Warning: by its name, mono.en is in English, but the model translates from Korean:" in err
