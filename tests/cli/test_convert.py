"""A model comes in, learns, and goes out again: with transformers and CTranslate2 at both ends."""

import warnings

import pytest
import torch

import heed
from heed.cli.main import main
from heed.decoding.config import UNGUARDED
from heed.service.http.opening import open_models
from tests.cli.conftest import sets

TEXTS = ["나는 책을 읽어요.", "바다", "그는 학교에 가요.", "오늘은 비가 와요."]
SHORT = ["training.threads=1", "training.steps=4", "training.valid_every=4", "training.batch_tokens=200",
         "decoding.max_length=12", "filters.max_length=40"]  # fmt: skip


@pytest.fixture(scope="module")
def phrases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phrasebook")
    assert main(["phrasebook", "--out", str(folder), "--train", "300", "--valid", "20", "--test", "40"]) == 0
    return folder


def pair(phrases, part="train"):
    return ["--source", str(phrases / f"{part}.ko"), "--target", str(phrases / f"{part}.en")]


def theirs(folder, texts, **settings):
    """What transformers says, by the settings that the folder names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of transformers about itself
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder)
        batch = tokenizer(texts, return_tensors="pt", padding=True)
        with torch.inference_mode():
            said = model.double().generate(**batch, **settings)
        return tokenizer.batch_decode(said, skip_special_tokens=True)


@pytest.fixture
def marian(tmp_path, phrases):
    """A folder as transformers saves one: a Marian with weights by chance, and a vocabulary of these phrases."""
    from heed.convert import tokenizers
    from heed.vocabularies import marian as vocabulary

    texts = (phrases / "train.ko").read_text().splitlines() + (phrases / "train.en").read_text().splitlines()
    vocabularies = vocabulary.learn(texts, 750)
    special, folder = vocabularies[0].special, tmp_path / "theirs"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers

        torch.manual_seed(4)
        config = transformers.MarianConfig(
            vocab_size=len(vocabularies[0]), d_model=16, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64,
            activation_function="swish", scale_embedding=True, static_position_embeddings=True, init_std=0.3,
            pad_token_id=special.pad, eos_token_id=special.last, decoder_start_token_id=special.pad, forced_eos_token_id=None,
        )  # fmt: skip
        transformers.MarianMTModel(config).save_pretrained(folder)
    tokenizers.write(vocabularies, folder, 64)
    return folder


def test_a_marian_of_transformers_is_tuned_and_goes_back(heed_command, marian, phrases, tmp_path):
    run, out = tmp_path / "run", tmp_path / "out"
    words = ["train", "--from", marian, *pair(phrases), "--out", run, "--quiet", *sets([*SHORT, "training.rate=0.003"])]
    assert heed_command(*words)[0] == 0
    assert heed_command("convert", run, "--out", out)[0] == 0
    before, after = (heed.load(folder, "cpu") for folder in (marian, run))
    changed = [not torch.equal(a, b) for a, b in zip(before.model.parameters(), after.model.parameters(), strict=True)]
    assert all(changed)
    after.model.double()
    search = {"beam": 4, "penalty": "length", "length_penalty": 1.0, "stopping": "heuristic", **UNGUARDED}
    said = [t.text for t in after.translate(TEXTS, **search)]
    assert theirs(out, TEXTS, num_beams=4, length_penalty=1.0, max_length=13) == said
    assert len(set(said)) > 1


def test_a_transformer_of_heed_goes_out_and_says_the_same(heed_command, phrases, tmp_path):
    run, out = tmp_path / "run", tmp_path / "out"
    shape = ["subwords.size=750", "model.dim=16", "model.heads=2", "model.hidden=32", "model.norm=post"]
    code, err = heed_command("train", *pair(phrases), "--out", run, *sets([*SHORT, *shape]))
    assert code == 0 and "Languages, from the file names: ko to en." in " ".join(err.split())
    (served,) = open_models([str(run)], "cpu", "torch")
    assert (served.source, served.target) == ("ko", "en")
    assert heed_command("convert", run, "--out", out)[0] == 0
    ours = heed.load(run, "cpu")
    ours.model.double()
    rules = {"beam": 4, "penalty": "length", "length_penalty": 1.0, "stopping": "heuristic"} | UNGUARDED
    said = [t.text for t in ours.translate(TEXTS, **rules)]
    assert theirs(out, TEXTS, num_beams=4, length_penalty=1.0, max_length=13) == said


RULES = {"beam": 4, "penalty": "length", "stopping": "first", "renormalize": True, "min_length": 1, **UNGUARDED}


def ctranslate2_says(folder, package, texts, alpha, most, compute_type="default"):
    import ctranslate2

    translator = ctranslate2.Translator(str(folder), intra_threads=1, compute_type=compute_type)
    pieces = [package.source.pieces(ids) for ids in package.source.encode(texts)]
    found = translator.translate_batch(
        pieces, beam_size=4, length_penalty=alpha, max_decoding_length=most, max_batch_size=64, disable_unk=True,
        suppress_sequences=[["<pad>"], ["<s>"]],
    )  # fmt: skip
    return [" ".join(package.target.processor.decode(one.hypotheses[0]).split()) for one in found]


def test_ctranslate2_says_what_heed_says_by_the_same_rules(heed_command, trained, tmp_path):
    assert heed_command("convert", trained, "--to", "ctranslate2", "--out", tmp_path / "out")[0] == 0
    ours = heed.load(trained, "cpu", "torch")
    said = [t.text for t in ours.translate(TEXTS, length_penalty=0.6, max_length=12, **RULES)]
    assert ctranslate2_says(tmp_path / "out", ours, TEXTS, 0.6, 12) == said


@pytest.mark.long
def test_ctranslate2_on_the_test_set_of_the_phrasebook(heed_command, tmp_path, monkeypatch):
    """Float32: the same 500 translations. int8: what CTranslate2 says if it quantizes the weights itself, and close to float32."""
    from sacrebleu import corpus_bleu

    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    run = tmp_path / "run"
    assert heed_command("phrasebook", "--out", tmp_path / "data", "--train", 1000)[0] == 0
    shorter = sets(["training.steps=600", "training.valid_every=600"])
    assert heed_command("train", "recipes/phrasebook.toml", "--out", run, "--quiet", *shorter)[0] == 0
    sources = (tmp_path / "data" / "test.ko").read_text("utf-8").splitlines()
    ours = heed.load(run, "cpu", "torch")
    said = [t.text for t in ours.translate(sources, length_penalty=0.6, max_length=60, **RULES)]
    for kind in ("float32", "int8"):
        words = ["convert", run, "--to", "ctranslate2", "--quantize", kind, "--out", tmp_path / kind]
        assert heed_command(*words)[0] == 0
    assert ctranslate2_says(tmp_path / "float32", ours, sources, 0.6, 60) == said
    small = ctranslate2_says(tmp_path / "int8", ours, sources, 0.6, 60)
    assert small == ctranslate2_says(tmp_path / "float32", ours, sources, 0.6, 60, compute_type="int8")
    assert corpus_bleu(small, [said]).score > 90


@pytest.fixture
def heed_command(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))

    def run(*words) -> tuple[int, str]:
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        print(out, err)  # seen where a test fails
        return code, err

    return run
