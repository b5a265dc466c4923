"""Multilingual models by the verbs: a direction is chosen, tuned, shown, exported and read again."""

import json

import pytest
import torch
import transformers

from tests import fixed_pairs
from tests.convert.multilingual import CODES, ENDS, saved

FEW = [
    "training.steps=2", "training.valid_every=2", "training.batch_tokens=200", "training.threads=1", "filters.max_length=60",
    "decoding.max_length=8",
]  # fmt: skip
SETTINGS = [word for setting in FEW for word in ("--set", setting)]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    for kind in CODES:
        saved(kind, folder / kind, ENDS[kind])
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for part, count in (("train", 120), ("valid", 4)):
        pairs = list(fixed_pairs.pairs(part, count))
        for side, code in (("source", "ko"), ("target", "en")):
            (folder / f"{part}.{code}").write_text("".join(f"{getattr(pair, side)}\n" for pair in pairs), "utf-8")
    return folder


def translate(heed, folder, *words):
    code, out, err = heed("translate", folder, "나는 가.", "--max-length", 6, "--beam", 1, *words)
    return (out if code == 0 else err).strip()


def test_a_language_is_chosen_by_its_code_or_its_name(heed, models):
    for kind, (own, _) in CODES.items():
        said = {translate(heed, models / kind, "--from", code, "--to", "en") for code in ("ko", own, "Korean", "kor")}
        assert len(said) == 1 and not said.pop().startswith("heed:")


@pytest.mark.parametrize(
    ("kind", "words", "says"),
    [
        ("m2m100", [], "the model translates between 100 languages, which heed info lists: choose one with --from and --to (in Python: source, target)"),
        ("m2m100", ["--from", "ko"], "the model translates between 100 languages, which heed info lists: choose one with --to (in Python: target)"),
        ("nllb", ["--to", "ko"], "the model translates ace to ko, de to ko, en to ko, fr to ko, zh to ko, zho_Hant to ko: choose one with --from (in Python: source)"),
        ("mbart50", ["--from", "ko", "--to", "Germann"], "the model does not translate from ko to Germann; Germann may mean de"),
        ("mbart50", ["--from", "ko", "--to", "xx"], "the model does not translate from ko to xx; it translates between 52 languages, which heed info lists"),
        ("nllb", ["--from", "ko", "--to", "xx"], "the model does not translate from ko to xx; it translates between 7 languages, ace, de, en, fr, ko, zh, zho_Hant"),
    ],
)  # fmt: skip
def test_a_language_that_is_missing_or_unknown_is_one_sentence(heed, models, kind, words, says):
    assert translate(heed, models / kind, *words) == f"heed: {says}"


def test_a_text_may_stay_in_its_language(heed, models):
    said = translate(heed, models / "m2m100", "--from", "ko", "--to", "Korean")
    assert not said.startswith("heed:") and said != translate(heed, models / "m2m100", "--from", "ko", "--to", "en")


def test_other_verbs_take_the_direction(heed, models, files):
    given = ["--from", "ko", "--to", "en", "--source", files / "valid.ko"]
    assert heed("evaluate", models / "nllb", *given, "--reference", files / "valid.en", "--beam", 1)[0] == 0
    code, one, _ = heed("score", models / "nllb", *given, "--target", files / "valid.en")
    assert (
        code == 0
        and one != heed("score", models / "nllb", *given[2:], "--from", "de", "--target", files / "valid.en")[1]
    )
    code, out, _ = heed("info", models / "nllb", "--all")
    assert (
        code == 0
        and "translates between" in out
        and "ace, de, en, fr, ko, zh, zho_Hant" in out
        and "by default" not in out
    )


@pytest.mark.parametrize("kind", CODES)
def test_it_is_tuned_in_the_direction_of_its_data_and_goes_out_again(heed, models, files, tmp_path, kind):
    data = [f"--{part}{side}={files}/{name}.{code}" for part, name in (("", "train"), ("valid-", "valid")) for side, code in (("source", "ko"), ("target", "en"))]  # fmt: skip
    code, _, err = heed(
        "train", "--from", models / kind, *data, "--out", tmp_path / "run", "--quiet", "--no-report", *SETTINGS
    )
    assert code == 0, err
    config = json.loads((tmp_path / "run" / "model" / "config.json").read_text("utf-8"))
    assert config["languages"] == {"source": "ko", "target": "en"} and "directions" not in config
    card = (tmp_path / "run" / "model" / "README.md").read_text("utf-8")
    assert "(`--from`, `--to`); trained here from ko to en |" in card
    assert f"| model | {'mBART-50' if kind == 'mbart50' else 'M2M-100'}, 2+2 layers" in card
    assert heed("convert", tmp_path / "run", "--out", tmp_path / "out")[0] == 0
    tuned, out = tmp_path / "run", tmp_path / "out"
    for words in ([], ["--from", "en", "--to", "fr"]):
        # the folder for transformers has no guards, the tuned model has them
        assert translate(heed, tuned, *words, "--allow-loops") == translate(heed, out, *words)
        assert translate(heed, tuned, *words) == translate(heed, out, *words, "--avoid-loops")
    assert config["decoding"]["avoid_loops"] and config["decoding"]["avoid_overlong"]
    assert translate(heed, tuned) == translate(heed, tuned, "--from", "ko", "--to", "en")
    assert "by default" in heed("info", out, "--all")[1]
    theirs, tokenizer = (
        transformers.AutoModelForSeq2SeqLM.from_pretrained(out),
        transformers.AutoTokenizer.from_pretrained(out),
    )
    with torch.no_grad():
        ids = theirs.generate(**tokenizer(["나는 가."], return_tensors="pt"), num_beams=1, max_length=7)
    assert " ".join(tokenizer.batch_decode(ids, skip_special_tokens=True)[0].split()) == translate(heed, out)


def test_data_that_do_not_say_their_languages_are_refused(heed, models, files, tmp_path):
    tsv = tmp_path / "pairs.tsv"
    tsv.write_text("가\tgo\n" * 30, "utf-8")
    given = ["train", "--from", models / "nllb", "--tsv", tsv, "--out", tmp_path / "run"]
    code, _, err = heed(*given)
    assert code == 1 and err.endswith("choose one with data.source_language and data.target_language")
    code, _, err = heed(*given, "--set", "data.source_language=ko", "--set", "data.target_language=Frenc")
    assert code == 1 and err.endswith("heed: the model does not translate from ko to Frenc; Frenc may mean fr")
    recipe = tmp_path / "recipe.toml"
    corpus = '[[data.corpora]]\nsource = "{0}/train.{1}"\ntarget = "{0}/train.{2}"\n'
    recipe.write_text(corpus.format(files, "ko", "en") + corpus.format(files, "en", "ko"), "utf-8")
    code, _, err = heed("train", recipe, "--from", models / "nllb", "--out", tmp_path / "run")
    assert code == 1 and "several directions, and a multilingual model is fine-tuned in one at a time: give" in err


def test_a_folder_of_ctranslate2_is_said_to_be_one(heed, models, tmp_path):
    code, _, err = heed("convert", models / "nllb", "--to", "ctranslate2", "--out", tmp_path / "fast")
    assert code == 0, err
    for verb in (["translate", "--from", "ko", "--to", "en"], ["info"]):
        code, _, err = heed(verb[0], tmp_path / "fast", *verb[1:], *(["나"] if verb[1:] else []))
        assert code == 1 and "is a CTranslate2 folder, which heed can export but not read" in err


def test_cards_show_how_a_direction_is_chosen(heed, models, tmp_path):
    code, _, err = heed("convert", models / "m2m100", "--to", "heed", "--out", tmp_path / "own")
    assert code == 0, err
    card = (tmp_path / "own" / "README.md").read_text("utf-8")
    assert card.startswith("# M2M-100, 100 languages") and "`heed translate FOLDER --from en --to de < text`" in card
    assert heed("convert", tmp_path / "own", "--out", tmp_path / "out")[0] == 0
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert 'language: ["af", "am", "ar", "ast",' in card and "tokenizer.src_lang = 'en'" in card
