"""The hashes of a teacher's blocks: appended block by block, and read again after any interruption."""

import json

import pytest

from heed.runs import distilled_files
from heed.runs.distilled_files import Blocks, read_hashes

SIZE = 2


def written(folder, blocks):
    own = Blocks(folder / "blocks.json", SIZE)
    paths = [folder / "source.txt", folder / "target.txt"]
    own.cut(paths, 0)
    for number in range(blocks):
        own.append({path: [f"{path.name} {number}"] * SIZE for path in paths})
    return own, paths


def test_a_block_costs_the_same_whatever_was_written_before(tmp_path, monkeypatch):
    sizes, append = [], distilled_files.append
    monkeypatch.setattr(
        distilled_files, "append", lambda path, data: (sizes.append((path.name, len(data))), append(path, data))
    )
    rewritten, write_text = [], distilled_files.write_text
    monkeypatch.setattr(
        distilled_files, "write_text", lambda path, text: (rewritten.append(path), write_text(path, text))
    )
    own, _ = written(tmp_path, 9)
    assert len(rewritten) == 1
    assert len({size for name, size in sizes if name == "blocks.json"}) == 1
    assert read_hashes(own.path) == own.hashes and len(own.hashes["source.txt"]) == 9
    assert Blocks(own.path, SIZE).damaged(tmp_path) == []


def test_a_line_that_was_being_written_does_not_count(tmp_path):
    own, paths = written(tmp_path, 4)
    whole = own.path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for end in range(last, len(whole)):
        own.path.write_bytes(whole[:end])
        assert Blocks(own.path, SIZE).intact(paths, 100) == 3 * SIZE
    again = Blocks(own.path, SIZE)
    again.cut(paths, 3 * SIZE)
    again.append({path: [f"{path.name} 3"] * SIZE for path in paths})
    assert read_hashes(own.path) == own.hashes and again.damaged(tmp_path) == []


def test_hashes_of_an_earlier_version_are_read_and_continued(tmp_path):
    own, paths = written(tmp_path, 3)
    own.path.write_text(json.dumps(own.hashes, indent=0) + "\n", encoding="utf-8", newline="\n")
    again = Blocks(own.path, SIZE)
    assert again.intact(paths, 100) == 3 * SIZE
    again.cut(paths, 3 * SIZE)
    again.append({path: ["new"] * SIZE for path in paths})
    assert len(read_hashes(own.path)["target.txt"]) == 4 and again.damaged(tmp_path) == []


@pytest.mark.parametrize(
    "content", ["", "{", '{"a": [', '{"a": []}\n[]\n', '{"a": []}\n{\n{"a": ["0"]}\n', "{}\n{}}\n"]
)
def test_damaged_hashes_are_refused(tmp_path, content):
    (tmp_path / "blocks.json").write_text(content, encoding="utf-8", newline="\n")
    with pytest.raises(ValueError, match=r"blocks\.json is damaged: restore it, or remove it"):
        Blocks(tmp_path / "blocks.json", SIZE)


def test_blocks_keep_the_size_that_they_were_begun_with(tmp_path):
    """Also where another engine would have others, or an earlier version did not write it down."""
    own, paths = Blocks(tmp_path / "blocks.json", SIZE), [tmp_path / "source.txt"]
    own.of_size(3)
    own.cut(paths, 0)
    own.append({paths[0]: ["a", "b", "c"]})
    again = Blocks(own.path, SIZE)
    again.of_size(5)
    assert (again.size, again.intact(paths, 100), again.damaged(tmp_path)) == (3, 3, [])
    again.cut(paths, 3)
    assert Blocks(own.path, SIZE).size == 3
    (tmp_path / "earlier").mkdir()
    earlier, paths = written(tmp_path / "earlier", 2)
    assert "lines" not in earlier.path.read_text("utf-8")
    again = Blocks(earlier.path, SIZE)
    again.of_size(5)
    assert (again.size, again.intact(paths, 100)) == (SIZE, 2 * SIZE)


@pytest.mark.parametrize("size", [[], ["0"], ["-3"], ["x"], ["2", "2"], ["99999999"]])
def test_a_size_that_no_block_has_is_refused(tmp_path, size):
    (tmp_path / "blocks.json").write_text(json.dumps({"lines": size}) + "\n", encoding="utf-8", newline="\n")
    with pytest.raises(ValueError, match=r"blocks\.json is damaged: restore it, or remove it if the files next to it"):
        Blocks(tmp_path / "blocks.json", SIZE)
