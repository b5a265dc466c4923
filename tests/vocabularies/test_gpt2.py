"""The vocabulary of GPT-2: every text comes back, and what cannot be read is named."""

import base64
import json

import pytest

from heed.vocabularies import byte_bpe, gpt2
from heed.vocabularies.files import File
from tests.data.mixed import lines, training


@pytest.fixture(scope="module")
def learned():
    return gpt2.learn(training(), 400)[0]


def test_every_text_comes_back(learned, tmp_path):
    gpt2.write(tmp_path, (learned, learned))
    read = gpt2.read(tmp_path)[0]
    for text in map(learned.clean, [*lines(), "😀 \u2581 naïve", "<pad>"]):
        assert read.decode(read.encode([text])[0]) == text
    assert read.key() == learned.key() and len(read) == 400


def test_the_end_of_a_text_is_no_part_of_it(learned):
    end = learned.encode([gpt2.END])[0]
    assert end == [learned.special.last] and learned.decode([*learned.encode(["a b"])[0], *end]) == "a b"


def test_what_is_missing_or_damaged_is_named(learned, tmp_path):
    with pytest.raises(
        ValueError, match=r"has no tokenizer.json, and no vocab.json with merges.txt: it cannot read text"
    ):
        gpt2.read(tmp_path)
    gpt2.write(tmp_path, (learned, learned))
    (tmp_path / "vocab.json").write_text('{"a": 0}')
    with pytest.raises(ValueError, match=r"vocab.json is damaged"):
        gpt2.read(tmp_path)
    with pytest.raises(
        ValueError, match=r"a GPT-2 vocabulary of 200 could not be learned: the bytes and <\|endoftext\|> alone are 257"
    ):
        gpt2.learn(training(), 200)


# a tokenizer.json whose parts do not fit each other


def vocabulary(learned, change=lambda settings, model: None):
    settings = json.loads(learned.tokenizer.to_str())
    change(settings, settings["model"])
    return gpt2.GPT2Vocabulary({"tokenizer.json": File("tokenizer.json", json.dumps(settings).encode())})


def normalized(charsmap):
    own = {"type": "Precompiled", "precompiled_charsmap": charsmap}
    return lambda settings, model: settings.update(normalizer={"type": "Sequence", "normalizers": [own]})


CHANGES = {
    "a missing merge": (lambda s, m: m["merges"].pop(5), "but no merge makes it; copy all files of the tokenizer"),
    "no merges": (lambda s, m: m.update(merges=[]), "but no merge makes it"),
    "an unknown piece": (lambda s, m: m["merges"].append(["QQ", "zz"]), "is damaged: Token `QQ` out of vocabulary"),
    "a missing piece": (lambda s, m: m["vocab"].pop("".join(m["merges"][0])), "out of vocabulary"),
    "half a merge": (lambda s, m: m["merges"].append(["Q"]), r"its merge \['Q'\] is not two pieces"),
    "a number": (lambda s, m: m["merges"].append([1, 2]), r"its merge \[1, 2\] is not two pieces"),
    "a missing byte": (lambda s, m: m["vocab"].pop("~"), "it has no piece for byte 0x7E; copy it again"),
    "an id twice": (lambda s, m: m["vocab"].update({"~": m["vocab"]["}"]}), "two pieces have the same id"),
    "a huge id": (lambda s, m: m["vocab"].update({"~": 1 << 30}), "the id of '~' is 1073741824; an id must be"),
    "words": (lambda s, m: s.update(model={"type": "WordLevel", "vocab": m["vocab"]}), "is not byte-level BPE"),
    "a prefix": (lambda s, m: m.update(continuing_subword_prefix="##"), "is not byte-level BPE"),
    "a suffix": (lambda s, m: m.update(end_of_word_suffix="</w>"), "is not byte-level BPE"),
    "a damaged map": (
        normalized(base64.b64encode(b"\0\4\0\0" + b"\xff\xff\xff\x7f" * 256).decode()),
        "its character normalization map",
    ),
    "no base64": (normalized("!"), "its character normalization map is not base64"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_tokenizer_whose_parts_do_not_fit_is_refused(learned, name):
    change, says = CHANGES[name]
    with pytest.raises(ValueError, match=rf"^tokenizer\.json.*{says}"):
        vocabulary(learned, change)


def test_settings_that_change_no_piece_change_no_ids(learned):
    def cut(settings, model):
        model["dropout"] = 0.9
        settings["truncation"] = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
        padding = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0}
        settings["padding"] = padding | {"pad_type_id": 0, "pad_token": "x"}

    def added(settings, model):  # by hand; no two pieces make it
        model["vocab"]["<|new|>"] = len(model["vocab"])

    texts = [*lines(), "<|endoftext|>"]
    right = learned.encode(texts)
    assert vocabulary(learned).encode(texts) == vocabulary(learned, cut).encode(texts) == right
    assert vocabulary(learned, added).encode(texts) == right


@pytest.mark.parametrize("module", [gpt2, byte_bpe])
def test_truncated_merges_are_refused(tmp_path, module):
    module.write(tmp_path, module.learn(training(), 400))
    text = (tmp_path / "merges.txt").read_text("utf-8")
    (tmp_path / "merges.txt").write_text(text[: text.rindex("\n", 0, -1) + 1], encoding="utf-8", newline="\n")
    with pytest.raises(ValueError, match=r"merges\.txt is damaged: the vocabulary has '.*', but no merge makes it"):
        module.read(tmp_path)
