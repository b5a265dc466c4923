"""The vocabulary of CTRL: control codes are one token each, and what cannot be read is named."""

import json

import pytest

from heed.vocabularies import ctrl, gpt
from tests.data.mixed import PLAIN, lines, training


@pytest.fixture(scope="module")
def learned():
    return ctrl.learn(training(), 800)[0]


@pytest.fixture(scope="module")
def coded(learned):
    return ctrl.with_codes(learned, ["Reviews", "streets", "책", "the"])


def test_it_is_read_as_it_was_written(coded, tmp_path):
    ctrl.write(tmp_path, (coded, coded))
    read = ctrl.read(tmp_path)[0]
    assert read.encode(lines()) == coded.encode(lines()) and read.codes == coded.codes
    assert read.key() == coded.key() and len(read) == len(coded) and read.special == coded.special


def test_another_vocabulary_has_another_key(learned, coded):
    keys = {learned.key(), coded.key(), ctrl.with_codes(learned, ["Reviews"]).key()}
    assert len(keys) == 3 and all(len(bytes.fromhex(key)) == 32 for key in keys)


def test_a_code_is_one_token_and_the_ids_before_it_stay(learned, coded):
    assert coded.encode(["Reviews the streets", "책"]) == [
        [coded.codes["Reviews"], learned.ids["the"], coded.codes["streets"]],
        [coded.codes["책"]],
    ]
    assert coded.ids | learned.ids == coded.ids and coded.codes["Reviews"] >= len(learned)
    again = ctrl.with_codes(coded, ["Rev"])
    assert again.codes == coded.codes | {"Rev": again.encode(["Rev"])[0][0]}


def test_words_come_back_with_single_spaces(learned):
    ids = learned.encode(["The  dog sees\ta cat ."])[0]
    assert learned.special.unknown in ids  # no line of the training text has "The"
    ids = learned.encode(["the  dog sees\ta cat ."])[0]
    assert learned.decode(ids) == "".join(learned.pieces(ids)).replace("▁", " ").strip() == "the dog sees a cat ."
    assert learned.decode(ids[:1]) == "the" and learned.decode([learned.ids["s@@"]]) == "s"


def test_the_published_codes_are_known(learned, tmp_path):
    ids = {"<unk>": 0, "\n": 1, "Reviews": 2, "R@@": 3}
    (tmp_path / "vocab.json").write_text(json.dumps(ids))
    (tmp_path / "merges.txt").write_text("#version: 0.2\nR e\n")
    read = ctrl.read(tmp_path)[0]
    assert read.codes == {"Reviews": 2} and read.pieces([3, 2, 1]) == ["▁R", "Reviews", "▁<0x0A>"]
    assert read.encode(["ReR\nR", "<unk>R"]) == [[0, 3, 1, 0], [0, 0]]  # "Re" is on the way to nothing that has an id


def test_merges_are_read_as_transformers_reads_them(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps({"<unk>": 0, "\n": 1, "3@@": 2, "1)": 3, "31@@": 4, ")": 5}))
    (tmp_path / "merges.txt").write_text("#version: 0.1\n3 1\n1 )</w>\n3 1\xa0\n\u2009 3\n")  # as in the published file
    assert ctrl.read(tmp_path)[0].encode(["31)"]) == [[2, 3]]


@pytest.mark.parametrize("code", ["two words", "", "\n", "<unk>", "end@@"])
def test_a_code_is_one_word(learned, code):
    with pytest.raises(ValueError, match=r"the control code is .*; it must be one word"):
        ctrl.with_codes(learned, [code])


def test_what_is_missing_or_damaged_is_named(learned, tmp_path):
    with pytest.raises(
        ValueError, match=r"has no vocab.json and no merges.txt: it cannot read text; a CTRL comes with"
    ):
        ctrl.read(tmp_path)
    ctrl.write(tmp_path, (learned, learned))
    (tmp_path / "vocab.json").write_text('{"a": 0, "<unk>": 1}')
    with pytest.raises(ValueError, match=r"vocab.json has no '\\n': it is not a CTRL vocabulary"):
        ctrl.read(tmp_path)


@pytest.mark.parametrize("module", [ctrl, gpt])
def test_the_same_text_gives_the_same_ids_every_time(module):
    found = [list(map(tuple, module.learn(training(), 500)[0].encode(PLAIN))) for _ in range(3)]
    assert found[0] == found[1] == found[2]
