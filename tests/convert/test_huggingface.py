"""Folders of transformers, in and out: what they compute and say is what heed computes and says."""

import dataclasses
import itertools
import json
import random
import re
import shutil

import pytest
import torch
from safetensors import safe_open

from heed import config as settings
from heed.convert import generation, huggingface, labels, model_card
from heed.convert.architecture import UNTRAINED
from heed.data.batching import pad
from heed.decoding.config import DecodingConfig
from heed.models import MODELS
from heed.models.package import Package
from heed.products.translator.translator import Translator
from heed.tasks import TASKS
from heed.vocabularies.folder import KINDS
from heed.vocabularies.labels import Labels
from heed.vocabularies.vocabulary import SpecialTokens
from tests.convert.small import ENDS, OTHERS, SIZES, classifier, package, pairs, speaking, vocabularies

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
COMMIT = "a1b2c3d4" * 5
ARCHITECTURES = {
    "one": "MarianMTModel",
    "two": "MarianMTModel",
    "marian": "MarianMTModel",
    "bart": "BartForConditionalGeneration",
    "pegasus": "PegasusForConditionalGeneration",
}
SEARCH = {
    "beam": 4,
    "length_penalty": 1.0,
    "penalty": "length",
    "stopping": "heuristic",
    "max_length": 12,
    "force_end": True,
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Models this small only lose time by sharing their work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def made(kind, **facts):
    """A package in float64 that says different things."""
    shape = {} if kind in OTHERS else {"output_bias": True}
    own = speaking(package(kind, **shape), ENDS[kind])
    own.model.double()
    return own._replace(facts={"languages": {"source": "ko", "target": "en"}, "decoding": SEARCH, **facts})


def opened(folder, kind="AutoModelForSeq2SeqLM"):
    """Their model and their tokenizer; every weight must have been there, and no other."""
    import transformers

    model, said = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)
    assert not any(said.values()), said
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder)


def texts(count=6):
    return [source for source, _ in pairs()[:count]]


def batch(tokenizer, count=6):
    found = tokenizer(texts(count), return_tensors="pt", padding=True)
    return {name: found[name] for name in ("input_ids", "attention_mask")}


@torch.no_grad()
def same_logits(own: Package, model, tokenizer):
    inputs = batch(tokenizer)
    special, valid = own.vocabularies[0].special, inputs["attention_mask"].bool()
    read = [[*special.before, *ids, special.last] for ids in own.vocabularies[0].encode(texts())]
    assert [ids[there].tolist() for ids, there in zip(inputs["input_ids"], valid, strict=True)] == read
    target = torch.randint(own.model.config.vocab_size, (6, 7), generator=torch.Generator().manual_seed(1))
    theirs = model(**inputs, decoder_input_ids=target).logits
    ours = own.model(inputs["input_ids"], target, valid)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", ENDS)
def test_what_goes_out_computes_and_says_the_same(tmp_path, kind):
    own = made(kind)
    huggingface.write(own, tmp_path / "out")
    model, tokenizer = opened(tmp_path / "out")
    assert type(model).__name__ == ARCHITECTURES[kind]
    assert model.dtype == torch.float64
    with safe_open(tmp_path / "out" / "model.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}  # older versions ask for it
    same_logits(own, model, tokenizer)


@pytest.mark.parametrize("tied", ["target", "none"])
def test_our_transformer_goes_out_however_its_matrices_are_tied(tmp_path, tied):
    own = package("two", tied=tied)
    own.model.double()
    huggingface.write(own, tmp_path / "out")
    same_logits(own, *opened(tmp_path / "out"))


def test_what_our_transformer_has_and_marian_has_not_is_said(tmp_path):
    with pytest.raises(ValueError, match="norm is 'pre'; a Hugging Face Marian has its norms after each sublayer"):
        huggingface.write(package("one", norm="pre"), tmp_path / "out")
    assert not any(tmp_path.iterdir())


@torch.no_grad()
def test_a_classifier_goes_out_and_comes_back(tmp_path):
    own = classifier()
    own.model.double()
    huggingface.write(own, tmp_path / "out")
    assert not (tmp_path / "out" / "generation_config.json").exists()
    model, tokenizer = opened(tmp_path / "out", "AutoModelForSequenceClassification")
    assert model.config.id2label == {0: "no", 1: "perhaps", 2: "yes"}
    assert model.config.label2id == {"no": 0, "perhaps": 1, "yes": 2}
    inputs = batch(tokenizer)
    theirs = model(**inputs).logits
    torch.testing.assert_close(
        own.model.classify_text(inputs["input_ids"], inputs["attention_mask"].bool()), theirs, rtol=0, atol=1e-10
    )
    back = huggingface.read(tmp_path / "out")
    assert (back.task, list(back.processors)) == ("classification", ["text", "labels"])
    assert back.processors["labels"].names == ["no", "perhaps", "yes"]
    assert "decoding" not in back.facts


def test_labels_stand_in_the_order_of_their_numbers():
    assert labels.names({"id2label": {"10": "k", "2": "c", "0": "a"}}) == ["a", "c", "k"]
    assert labels.names({"num_labels": 2}) == ["LABEL_0", "LABEL_1"]


@pytest.mark.parametrize("names", [["a", "b"], list("abcd")])
def test_other_labels_than_the_model_has(tmp_path, names):
    own = classifier()
    with pytest.raises(ValueError, match=f"the model has 3 labels, but the folder names {len(names)}"):
        huggingface.write(own._replace(processors={**own.processors, "labels": Labels(names)}), tmp_path / "out")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("kind", OTHERS)
def test_there_and_back(tmp_path, kind):
    own = made(kind)
    own.model.float()
    huggingface.write(own, tmp_path / "out")
    back = huggingface.read(tmp_path / "out")
    assert type(back.model) is type(own.model)
    assert not back.model.training
    assert back.model.config == own.model.config
    assert all(torch.equal(weight, own.model.state_dict()[name]) for name, weight in back.model.state_dict().items())
    assert [side.key() for side in back.vocabularies] == [side.key() for side in own.vocabularies]
    given = settings.read(DecodingConfig, back.facts["decoding"])
    assert given == settings.read(DecodingConfig, {**own.facts["decoding"], **generation.GUARDS})
    assert back.facts["max_source"] == SIZES["max_length"]
    assert back.task == own.task
    assert list(back.processors) == ["source", "target"]
    assert "subwords" not in back.facts
    if kind == "marian":
        assert back.facts["languages"] == own.facts["languages"]
    huggingface.write(back, tmp_path / "again")
    for name in ("config.json", "generation_config.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes(), name


@pytest.mark.parametrize("kind", ["one", "two"])
def test_our_transformer_comes_back_as_a_marian_that_computes_the_same(tmp_path, kind):
    own = made(kind)
    huggingface.write(own, tmp_path / "out")
    back = huggingface.read(tmp_path / "out")
    back.model.double()
    source, target = torch.randint(5, 300, (2, 9)), torch.randint(5, 300, (2, 6))
    torch.testing.assert_close(back.model(source, target).float(), own.model(source, target).float())
    assert back.vocabularies[1].special[:4] == own.vocabularies[1].special[:4]
    assert [side.encode(texts()) for side in back.vocabularies] == [side.encode(texts()) for side in own.vocabularies]


SEARCHES = {
    "what the folder says": {},
    "greedy": {"beam": 1},
    "first": {"stopping": "first", "length_penalty": 2.0},
    "exact": {"stopping": "exact", "length_penalty": 0.5},
    "limits": {"no_repeat": 2, "min_length": 5},
    "no forced end": {"force_end": False},
}


@torch.no_grad()
@pytest.mark.parametrize("kind", ENDS)
def test_translations_are_the_same(tmp_path, kind):
    from transformers import GenerationConfig

    own = made(kind)
    huggingface.write(own, tmp_path / "out")
    model, tokenizer = opened(tmp_path / "out")
    inputs, said = batch(tokenizer), set()
    for name, changes in SEARCHES.items():
        decoding = {**SEARCH, **changes, **generation.GUARDS}
        theirs = GenerationConfig(**generation.to_theirs(decoding, own.vocabularies[1].special, SIZES["max_length"]))
        if changes:
            model.generation_config = theirs
        found = tokenizer.batch_decode(model.generate(**inputs), skip_special_tokens=True)
        translator = Translator([own.model], own.vocabularies, decoding=settings.read(DecodingConfig, decoding))
        ours = [each.text.split() for each in translator.translate(texts())]
        assert [text.split() for text in found] == ours, name
        said |= set(map(tuple, ours))
    assert len(said) > 10


@torch.no_grad()
@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("changes", [{"beam": 1}, {"length_penalty": 0.6}], ids=["greedy", "beam 4"])
def test_two_hundred_texts_become_the_tokens_of_generate(tmp_path, kind, changes):
    from transformers import GenerationConfig

    own, decoding = made(kind), {**SEARCH, "no_repeat": 2, **changes, **generation.GUARDS}
    huggingface.write(own, tmp_path / "out")
    model, _ = opened(tmp_path / "out")
    special, chance = own.vocabularies[1].special, random.Random(1)
    words = [i for i in range(len(own.vocabularies[0])) if i not in (*special[:4], *special.before)]
    ids = [chance.choices(words, k=chance.randint(1, 12)) for _ in range(200)]
    tokens, valid = (torch.from_numpy(part) for part in pad(ids, special))
    theirs = GenerationConfig(**generation.to_theirs(decoding, special, SIZES["max_length"]))
    found = model.generate(tokens, attention_mask=valid.long(), generation_config=theirs)[:, 1:].tolist()
    found = [row[: row.index(special.last) + 1] for row in found]  # what comes after the end is padding, or more ends
    search = settings.read(DecodingConfig, decoding)
    hypotheses = Translator([own.model], own.vocabularies).search_ids(ids, search, [[] for _ in ids])
    assert [best[0].tokens for best in hypotheses] == found
    assert len(set(map(tuple, found))) > 40 and len(set(map(len, found))) > 3


@torch.no_grad()
@pytest.mark.parametrize(("bias", "begins"), [(-4.0, {False}), (4.0, {False, True})], ids=["none", "some"])
@pytest.mark.parametrize("changes", [{"beam": 1}, {"beam": 4}, {"min_length": 6}], ids=["greedy", "beam 4", "long"])
def test_a_bart_that_is_not_made_to_begin_says_what_it_says_with_transformers(tmp_path, changes, bias, begins):
    """Left to itself, a model begins with its mark only where it finds that likely."""
    own = made("bart", decoding={**SEARCH, **changes, "force_begin": False})
    own.model.bias[0] += bias
    huggingface.write(own, tmp_path / "out")
    written = json.loads((tmp_path / "out" / "generation_config.json").read_text("utf-8"))
    assert "forced_bos_token_id" not in written
    model, tokenizer = opened(tmp_path / "out")
    back = huggingface.read(tmp_path / "out")
    assert back.facts["decoding"]["force_begin"] is False
    assert back.facts["origin"]["left"] == []
    back.model.double()
    generated = model.generate(**batch(tokenizer))[:, 1:].tolist()
    found = [row[: row.index(2) + 1] for row in generated]  # what comes after the end is padding, or more ends
    decoding = settings.read(DecodingConfig, back.facts["decoding"])
    translator = Translator([back.model], back.vocabularies, decoding=decoding)
    said = translator.translate(texts())
    assert [one.ids for one in said] == found
    assert [one.text.split() for one in said] == [
        text.split() for text in tokenizer.batch_decode(generated, skip_special_tokens=True)
    ]
    assert {row[0] == 0 for row in found} == begins
    assert {one.ids[0] for one in translator.translate(texts(), force_begin=True)} == {0}


def save(own, folder, shards=None):
    """As transformers itself would save it, in one file or in several."""
    huggingface.write(own, folder.with_name("first"))
    model, tokenizer = opened(folder.with_name("first"))
    model.save_pretrained(folder, **({"max_shard_size": shards} if shards else {}))
    tokenizer.save_pretrained(folder)
    return model


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("way", ["safetensors", "shards", "pickle"])
def test_what_transformers_saves_is_read(tmp_path, kind, way):
    own, folder = made(kind), tmp_path / "theirs"
    model = save(own, folder, "200KB" if way == "shards" else None)
    if way == "pickle":
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    assert (folder / "model.safetensors.index.json").exists() == (way == "shards")
    back = huggingface.read(folder)
    expected = own.model.float().state_dict()
    assert all(torch.equal(weight, expected[name]) for name, weight in back.model.state_dict().items())
    assert [side.encode(texts()) for side in back.vocabularies] == [side.encode(texts()) for side in own.vocabularies]
    assert settings.read(DecodingConfig, back.facts["decoding"]) == settings.read(
        DecodingConfig, {**SEARCH, **generation.GUARDS}
    )


def edited(folder, name, **changes):
    """Change settings in a file; None takes one out."""
    said = json.loads((folder / name).read_text("utf-8")) | changes
    (folder / name).write_text(json.dumps({key: value for key, value in said.items() if value is not None}), "utf-8")


def test_an_old_folder_has_its_search_in_config_json(tmp_path):
    huggingface.write(made("marian"), tmp_path / "out")
    (tmp_path / "out" / "generation_config.json").unlink()
    old = {"num_beams": 6, "max_length": 512, "bad_words_ids": [[vocabularies("marian")[1].special.pad]]}
    edited(tmp_path / "out", "config.json", **old, forced_eos_token_id=0, num_beam_groups=1, prefix=" ")
    facts = huggingface.read(tmp_path / "out").facts
    assert facts["origin"]["left"] == []
    assert settings.read(DecodingConfig, facts["decoding"]) == DecodingConfig(
        beam=6,
        length_penalty=1.0,
        penalty="length",
        stopping="heuristic",
        max_length=511,
        force_end=True,
        **generation.GUARDS,
    )


def test_an_old_bart_says_otherwise_what_a_text_begins_with(tmp_path):
    huggingface.write(made("bart"), tmp_path / "out")
    (tmp_path / "out" / "generation_config.json").unlink()
    facts = huggingface.read(tmp_path / "out").facts
    assert facts["decoding"]["force_begin"] is False, "by default, it is not"
    assert facts["decoding"]["force_end"], "by default, it is"
    for said in ({"force_bos_token_to_be_generated": True}, {"forced_bos_token_id": 0}):
        folder = shutil.copytree(tmp_path / "out", tmp_path / next(iter(said)))
        edited(folder, "config.json", **said)
        facts = huggingface.read(folder).facts
        assert facts["decoding"]["force_begin"]
        assert facts["origin"]["left"] == []


@pytest.mark.parametrize("name", ["BartModel", None])
def test_a_model_that_does_not_name_its_head(tmp_path, name):
    huggingface.write(made("bart"), tmp_path / "out")
    edited(tmp_path / "out", "config.json", architectures=name and [name])
    assert huggingface.read(tmp_path / "out").facts["origin"]["architecture"] == "BartForConditionalGeneration"


@pytest.mark.parametrize(
    ("kind", "task"),
    [
        ("marian", "translation"),
        ("bart", "translation"),
        ("pegasus", "gap-sentences"),
        ("classifier", "classification"),
        ("one", "translation"),
    ],
)
def test_the_task_of_a_folder_is_known_without_its_weights(tmp_path, kind, task):
    huggingface.write(classifier() if kind == "classifier" else made(kind), tmp_path / "out")
    (tmp_path / "out" / "model.safetensors").unlink()
    said = json.loads((tmp_path / "out" / "config.json").read_text("utf-8"))
    assert huggingface.task_of(tmp_path / "out", said) == task
    with pytest.raises(ValueError, match="holds a T5Model; heed reads MarianMTModel, "):
        huggingface.task_of(tmp_path, {"architectures": ["T5Model"]})
    with pytest.raises(ValueError, match=r"config\.json names no architecture"):
        huggingface.task_of(tmp_path, {})


@pytest.mark.parametrize("architecture", huggingface.ARCHITECTURES, ids=lambda each: f"{each.name} {each.task}")
def test_an_architecture_names_what_there_is(architecture):
    import transformers

    assert architecture.task in TASKS or architecture.task in UNTRAINED
    assert architecture.vocabulary in KINDS or architecture.vocabulary is None  # of images
    assert architecture.model in [system.model for system in MODELS.values()]
    assert hasattr(transformers, architecture.name) and hasattr(transformers, architecture.auto_class)


@pytest.mark.parametrize("kind", ["one", *OTHERS])
def test_a_subclass_of_a_model_is_not_written(tmp_path, kind):
    own = made(kind)

    class Other(type(own.model)):
        def forward(self, *args):
            return -super().forward(*args)

    with pytest.raises(ValueError, match="transformers has no equivalent of a Other: it cannot be"):
        huggingface.write(own._replace(model=Other(own.model.config)), tmp_path / "out")
    assert not any(tmp_path.iterdir())


def test_the_commit_of_a_model_from_the_hub_is_pinned(tmp_path):
    folder = tmp_path / "models--owner--opus-mt-ko-en" / "snapshots" / COMMIT
    folder.parent.mkdir(parents=True)
    huggingface.write(made("marian", languages={}), folder)
    (folder / "README.md").write_text("---\ntags:\n- a\nlicense: apache-2.0\n---\nlicense: mit\n")
    facts = huggingface.read(folder).facts
    assert facts["origin"] == {
        "name": "owner/opus-mt-ko-en", "revision": COMMIT, "architecture": "MarianMTModel", "licence": "apache-2.0", "left": [],
    }  # fmt: skip
    assert facts["languages"] == {"source": "ko", "target": "en"}
    huggingface.write(made("marian", **facts), tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert f"Converted from owner/opus-mt-ko-en at revision {COMMIT}." in text
    front = dict(line.split(": ", 1) for line in text.split("---")[1].strip().splitlines())
    assert {name: json.loads(value) for name, value in front.items()} == {
        "language": ["ko", "en"], "license": "apache-2.0", "library_name": "transformers", "pipeline_tag": "translation",
        "tags": ["heed", "marian"], "base_model": "owner/opus-mt-ko-en",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("before", "name"),
    [("owner/model", "owner/model"), ("/home/someone/model", "out"), ("./model", "out"), (None, "out")],
)
def test_the_name_of_a_folder(tmp_path, before, name):
    huggingface.write(made("marian"), tmp_path / "out")
    edited(tmp_path / "out", "config.json", _name_or_path=before)
    origin = huggingface.read(tmp_path / "out").facts["origin"]
    assert (origin["name"], origin["revision"]) == (name, None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Helsinki-NLP/opus-mt-ko-en", ("ko", "en")),
        ("Helsinki-NLP/opus-mt-tc-big-en-ko", ("en", "ko")),
        ("Helsinki-NLP/opus-mt-en-ROMANCE", ("en", "ROMANCE")),
        ("Helsinki-NLP/opus-tatoeba-en-ja", (None, None)),
        ("model", (None, None)),
    ],
)
def test_languages_from_a_name(tmp_path, name, expected):
    assert tuple(huggingface._languages(tmp_path, name).values()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\nlicense: mit\n---\n", "mit"),
        ('---\nlanguage: ko\nlicense: "cc-by-4.0"\n---\n', "cc-by-4.0"),
        ("---\nlanguage: ko\n---\nlicense: mit\n", None),
        ("# A model\n", None),
        (None, None),
    ],
)
def test_the_licence_on_a_card(tmp_path, text, expected):
    if text is not None:
        (tmp_path / "README.md").write_text(text)
    assert model_card.licence(tmp_path) == expected


@pytest.mark.parametrize("kind", ["one", "bart", "classifier"])
def test_the_program_on_the_card_runs(tmp_path, capsys, monkeypatch, kind):
    own = classifier() if kind == "classifier" else made(kind)
    huggingface.write(own, tmp_path / "out")
    [code] = re.findall(r"```python\n(.*?)```", (tmp_path / "out" / "README.md").read_text("utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path / "out")
    exec(code, {})
    said = capsys.readouterr().out
    assert re.fullmatch(r"\[('.*')\]\n", said)
    assert kind != "classifier" or said[2:-3] in own.processors["labels"].names


def test_the_card_of_a_model_that_was_tuned_here_says_what_it_began_with():
    origin = {"name": "owner/model", "revision": "ab12"}
    assert model_card.origin({"origin": origin, "trained": {}}) == (
        "\nTraining started from the weights of owner/model at revision ab12.\n"
    )
    assert model_card.origin({"trained": {}}) == ""


def test_the_card_says_where_the_searches_differ(tmp_path):
    own = made("one", decoding={"beam": 5}, trained={"weights": "step 3", "valid_bleu": 31.25})
    huggingface.write(own, tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "Heed divides the log probability of n tokens by ((5 + n) / 6)^0.6; transformers has no such penalty" in text
    assert "| bleu on its validation set | 31.25 |" in text
    assert "came from" not in text
    huggingface.write(made("one"), tmp_path / "same")
    assert "no such penalty" not in (tmp_path / "same" / "README.md").read_text("utf-8")


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(ValueError, match="already exists: choose another folder"):
        huggingface.write(made("one"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_an_empty_folder_is_written_to(tmp_path):
    huggingface.write(made("marian"), tmp_path)
    assert (tmp_path / "config.json").is_file()


def test_a_failure_on_the_way_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface.model_card, "huggingface", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        huggingface.write(made("one"), tmp_path / "out")
    assert not any(tmp_path.iterdir())


# settings of a search

MARIAN, BART = SpecialTokens(9, 1, 9, 0, never=(9,)), SpecialTokens(1, 3, 2, 2, before=(0,))
BANNED = {"bad_words_ids": [[9]]}


def test_what_heed_takes_for_granted_is_what_a_search_has():
    own = dataclasses.asdict(DecodingConfig())
    assert {name: own[name] for name in generation.OUR_DEFAULTS} == generation.OUR_DEFAULTS
    assert set(own) - set(generation.OUR_DEFAULTS) == {
        "max_growth", "seed", *generation.GUARDS, "rerank", "candidates", "candidates_from", "utility"
    }  # fmt: skip


def test_what_transformers_takes_for_granted_is_what_we_think():
    from transformers import GenerationConfig

    defaults = GenerationConfig._get_default_generation_params()
    for name, value in (generation.THEIR_DEFAULTS | generation.UNSUPPORTED | generation.UNSUPPORTED_SAMPLING).items():
        if name in defaults and name != "max_length":
            assert value == defaults[name], name
    names = set(GenerationConfig().to_dict()) - {"transformers_version"}
    looked_at = {*generation.THEIR_DEFAULTS, *generation.UNSUPPORTED, *generation.UNSUPPORTED_SAMPLING, *generation.IDS}
    assert looked_at - names <= {"forced_bos_token_id"}, "they have it no longer"


@pytest.mark.parametrize(
    ("special", "begin"), [(MARIAN, {}), (BART, {"force_begin": True}), (BART, {"force_begin": False})]
)
def test_settings_of_a_search_there_and_back(special, begin):
    ways = itertools.product([1, 4], [0.0, 1.0, 2.0], ["exact", "heuristic", "first"], [0, 3], [8, 40], [True, False])
    for beam, alpha, stopping, shortest, longest, force in ways:
        ours = {
            "beam": beam, "length_penalty": alpha, "penalty": "length", "stopping": stopping, "min_length": shortest,
            "max_length": longest, "no_repeat": 3 if force else 0, "renormalize": not force, "force_end": force, **begin, **generation.GUARDS,
        }  # fmt: skip
        back, left = generation.to_ours(generation.to_theirs(ours, special, 100), special)
        assert back == ours
        assert left == []


def test_drawing_there_and_back():
    ours = {"sample": True, "temperature": 0.7, "top_k": 10, "top_p": 0.9, "beam": 1, "length_penalty": 1.0}
    ours |= {"min_p": 0.05, "typical_p": 0.8, "repetition_penalty": 1.2}
    back, _ = generation.to_ours(generation.to_theirs(ours, MARIAN, 100), MARIAN)
    assert {name: back[name] for name in ours} == ours
    assert generation.to_ours({"do_sample": True, **BANNED}, MARIAN)[0]["top_k"] == 50
    with pytest.raises(ValueError, match=r"the repetition penalty is 1\.2 and there are 4 beams"):
        generation.to_theirs({"repetition_penalty": 1.2, "beam": 4}, MARIAN, 100)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"max_length": 20}, {"max_length": 19}),
        ({"max_new_tokens": 20, "max_length": 5}, {"max_length": 20}),
        ({"max_length": 1}, {"max_length": 1}),
        ({"min_length": 10}, {"min_length": 9}),
        ({"min_new_tokens": 10}, {"min_length": 10}),
        ({"min_length": 1}, {"min_length": 0}),
        ({"early_stopping": True}, {"stopping": "first"}),
        ({"early_stopping": "never"}, {"stopping": "exact"}),
        ({"early_stopping": False}, {"stopping": "heuristic"}),
        ({"num_beams": None, "length_penalty": None}, {"beam": 1, "length_penalty": 1.0}),
        ({"length_penalty": 2}, {"length_penalty": 2.0}),
        ({"forced_eos_token_id": [0]}, {"force_end": True}),
        ({"no_repeat_ngram_size": 3}, {"no_repeat": 3}),
    ],
)
def test_each_setting_of_theirs(theirs, ours):
    found, left = generation.to_ours({**BANNED, **theirs}, MARIAN)
    assert {name: found[name] for name in ours} == ours
    assert left == []


@pytest.mark.parametrize(
    ("special", "theirs", "ours"),
    [
        (  # Helsinki-NLP/opus-mt-en-de
            SpecialTokens(58100, 1, 58100, 0, never=(58100,)),
            {"_from_model_config": True, "bad_words_ids": [[58100]], "bos_token_id": 0, "decoder_start_token_id": 58100,
             "eos_token_id": 0, "forced_eos_token_id": 0, "max_length": 512, "num_beams": 6, "pad_token_id": 58100,
             "renormalize_logits": True, "transformers_version": "4.32.0.dev0"},
            {"beam": 6, "max_length": 511, "renormalize": True, "force_end": True},
        ),
        (  # facebook/bart-large-cnn
            BART,
            {"_from_model_config": True, "bos_token_id": 0, "decoder_start_token_id": 2, "early_stopping": True,
             "eos_token_id": 2, "forced_bos_token_id": 0, "forced_eos_token_id": 2, "length_penalty": 2.0, "max_length": 142,
             "min_length": 56, "no_repeat_ngram_size": 3, "num_beams": 4, "pad_token_id": 1},
            {"beam": 4, "max_length": 141, "min_length": 54, "force_end": True, "length_penalty": 2.0, "stopping": "first",
             "no_repeat": 3},
        ),
        (  # google/pegasus-xsum
            SpecialTokens(0, 105, 0, 1),
            {"bos_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1, "forced_eos_token_id": 1,
             "length_penalty": 0.6, "max_length": 64, "num_beams": 8, "pad_token_id": 0},
            {"beam": 8, "max_length": 63, "length_penalty": 0.6, "force_end": True},
        ),
    ],
)  # fmt: skip
def test_what_well_known_models_say(special, theirs, ours):
    generation.check_ids(theirs, special)
    found, left = generation.to_ours(theirs, special)
    common = {"length_penalty": 1.0, "penalty": "length", "stopping": "heuristic", **generation.GUARDS}
    assert settings.read(DecodingConfig, found) == DecodingConfig(**{**common, **ours})
    assert left == []


def test_by_default_a_text_is_as_long_as_heed_lets_it():
    assert "max_length" not in generation.to_ours(BANNED, MARIAN)[0]
    assert generation.to_theirs({}, MARIAN, 100)["max_length"] == 100


def test_another_mark_than_the_text_begins_with_cannot_be_forced():
    with pytest.raises(ValueError, match="forced_bos_token_id is 7; heed can force only 0 there"):
        generation.to_ours({"forced_bos_token_id": 7}, BART)


def test_what_a_text_begins_with_counts_for_them():
    theirs = {"forced_bos_token_id": 0, "min_length": 56, "max_length": 142}
    found, left = generation.to_ours(theirs, BART)
    assert (found["min_length"], found["max_length"], left) == (54, 141, [])
    assert generation.to_theirs(found, BART, 1024).items() >= theirs.items()


@pytest.mark.parametrize(
    ("theirs", "says"),
    [
        (
            {"num_beam_groups": 2},
            "num_beam_groups is 2, which heed's search does not support: take it out, or set it to 1",
        ),
        ({"force_words_ids": [[4]]}, "force_words_ids is [[4]], which heed's search does not support: take it out"),
        (
            {"repetition_penalty": 1.2, "num_beams": 4},
            "the repetition penalty is 1.2 and there are 4 beams: transformers then",
        ),
        ({"suppress_tokens": [3]}, "suppress_tokens is [3], which"),
        ({"do_sample": True, "top_h": 0.5}, "top_h is 0.5, which"),
        (
            {"do_sample": True, "num_beams": 3},
            "do_sample is true and num_beams 3: heed can either sample or use a beam",
        ),
        ({"length_penalty": -1.0}, "length_penalty is -1.0; it must not be negative in heed"),
        ({"early_stopping": "soon"}, "early_stopping is 'soon'; it must be true, false or 'never'"),
        ({"bad_words_ids": [[9], [7, 8]]}, "bad_words_ids bans [[7, 8]]; heed can ban [9] here"),
        ({"forced_eos_token_id": 5}, "forced_eos_token_id is 5; heed can force only 0 there"),
        (
            {"forced_bos_token_id": 5},
            "forced_bos_token_id is 5, but texts in this vocabulary do not begin with a special token",
        ),
        ({"token_healing": True}, "token_healing is True, which heed's search does not support"),
    ],
)
def test_what_heed_cannot_follow_is_refused(theirs, says):
    with pytest.raises(ValueError) as error:
        generation.to_ours({**BANNED, **theirs}, MARIAN)
    assert says in str(error.value)


def test_what_does_not_matter_is_listed():
    theirs = {
        "typical_p": 0.5,
        "num_return_sequences": 2,
        "suppress_tokens": [],
        "_from_model_config": True,
        "something_new": 1,
    }
    assert generation.to_ours({**BANNED, **theirs}, MARIAN)[1] == ["num_return_sequences", "something_new"]
    assert generation.to_ours({"num_return_sequences": 1}, MARIAN)[1] == []
    assert generation.to_ours({"bad_words_ids": [[9], [1]]}, MARIAN)[1] == ["bad_words_ids"]


@pytest.mark.parametrize("none", [{}, {"bad_words_ids": None}, {"bad_words_ids": []}])
def test_what_a_folder_does_not_ban_is_not_left_aside(none):
    assert generation.to_ours(none, MARIAN)[1] == []


def test_what_is_nothing_of_a_search_is_not_listed():
    from transformers import GenerationConfig

    theirs = {
        name: value for name, value in GenerationConfig().to_dict().items() if name not in generation.THEIR_DEFAULTS
    }
    theirs |= {
        "output_attentions": False,
        "output_hidden_states": False,
        "use_cache": True,
        "return_dict_in_generate": True,
    }
    assert generation.to_ours({**BANNED, **theirs}, MARIAN)[1] == []
    every = set(GenerationConfig().to_dict())
    looked_at = {
        *generation.THEIR_DEFAULTS,
        *generation.UNSUPPORTED,
        *generation.UNSUPPORTED_SAMPLING,
        *generation.IDS,
        *generation.NO_EFFECT,
    }
    assert every - looked_at == {"num_return_sequences"}


def test_an_id_may_stand_in_a_list():
    generation.check_ids({"eos_token_id": [0], "pad_token_id": None}, MARIAN)
    with pytest.raises(ValueError, match=r"eos_token_id is \[0, 7\], but in this vocabulary it is 0"):
        generation.check_ids({"eos_token_id": [0, 7]}, MARIAN)


@pytest.mark.parametrize("name", ["pad", "eos", "decoder_start"])
def test_ids_that_mean_something_else_in_the_vocabulary(tmp_path, name):
    huggingface.write(made("marian"), tmp_path / "out")
    edited(tmp_path / "out", "config.json", **{f"{name}_token_id": 7})
    with pytest.raises(ValueError, match=f"config.json: {name}_token_id is 7, but in this vocabulary it is"):
        huggingface.read(tmp_path / "out")
