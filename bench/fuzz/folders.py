"""What reads folders: models of Heed's own, of Hugging Face and of sentence-transformers, vocabularies, weights, checkpoints."""

import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from bench.fuzz.cases import Case, Reader, load
from heed import loading
from heed.convert import huggingface, sentence_transformers, weights
from heed.data import contamination
from heed.data.synthetic import phrasebook
from heed.models import MODELS
from heed.models.package import Package
from heed.runs import final_validation
from heed.training import checkpoints
from heed.vocabularies import characters, sentencepiece, words
from heed.vocabularies import folder as vocabularies
from heed.vocabularies.labels import Labels
from heed.vocabularies.sentencepiece import SubwordsConfig

TEXTS = ("나는 책을 읽어요.", "I read a book, don't I?", "", "\ud800\0 ∑ 😀 é")
SIDES = {"encoder_layers": 1, "decoder_layers": 1}
SMALL = {"dim": 8, "heads": 2, "hidden": 8, "max_length": 32}
KINDS = (
    "bart",
    "pegasus",
    "gpt2",
    "gpt",
    "ctrl",
    "wordpiece",
    "roberta",
    "albert",
    "bigbird",
    "marian",
    "mbart50",
    "m2m100",
)
SIZE = 400  # of a vocabulary: all bytes and some pieces


def texts() -> list[str]:
    return [pair.target for pair in phrasebook.pairs("train", 150)]  # few characters: small vocabularies


def _learned(kind: str) -> Any:
    """A small vocabulary of a kind; "spm" is heed's own."""
    torch.manual_seed(0)
    if kind == "spm":
        return sentencepiece.learn(texts(), SubwordsConfig(), SIZE)
    if kind == "words":
        return words.learn(texts(), SubwordsConfig(least=1, size=100))
    if kind in ("characters", "bytes"):
        return characters.learn(kind, texts(), SubwordsConfig(), ["code"] if kind == "characters" else [])
    return vocabularies.learn(kind, texts(), SIZE)[0]


def _model(name: str, vocabulary: Any, **shape: Any) -> nn.Module:
    system = MODELS[name]
    torch.manual_seed(0)
    return system.model(system.config(vocab_size=len(vocabulary), **{**SMALL, **shape})).eval().requires_grad_(False)


def _pair(name: str, kind: str, **facts: Any) -> Package:
    own = _learned(kind)
    return Package(_model(name, own, **SIDES), "translation", {"source": own, "target": own}, facts)


def _text(name: str, kind: str, task: str, facts: dict[str, Any], **shape: Any) -> Package:
    own = _learned(kind)
    labels = shape.get("labels", 0)
    names = {"labels": Labels([f"label {i}" for i in range(labels)])} if labels else {}
    return Package(_model(name, own, **shape), task, {"text": own, **names}, facts)


def written(write: Callable[[Path], object]) -> Case:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "a")
        return load(Path(folder) / "a")


def unverified(case: Case) -> Case:
    """Without the hash of the weights, as earlier versions wrote it: so damages get further."""
    facts = json.loads(case["config.json"])
    facts.pop("sha256", None)
    return {**case, "config.json": json.dumps(facts).encode()}


def _model_seeds() -> Iterable[Case]:
    facts = {
        "max_source": 20,
        "languages": {"source": "ko", "target": "en"},
        "decoding": {"beam": 2},
        "alignment": {"layer": 0, "after": True},
    }
    packages = [
        _pair("transformer", "spm", **facts),
        _text("gpt2", "gpt2", "language", {}, layers=1),
        _text("bert", "wordpiece", "classification", {}, layers=1, head="classification", labels=3),
    ]  # fmt: skip
    own = _learned("characters")
    recurrent = MODELS["rnn-lm"].config(vocab_size=len(own), dim=8, hidden=8, layers=1)
    packages.append(Package(MODELS["rnn-lm"].model(recurrent).eval(), "language", {"text": own}, {}))
    for package in packages:
        case = written(lambda folder, package=package: loading.write_package(package, folder))
        yield unverified(case)
        yield case


def _huggingface_seeds() -> Iterable[Case]:
    packages = [
        _text("bert", "wordpiece", "any", {}, layers=1, head="masked"),
        _pair("marian", "marian"),
        _text("gpt2", "gpt2", "language", {}, layers=1),
        _pair("bart", "bart"),
        _pair("m2m100", "m2m100"),
    ]
    for package in packages:
        yield written(lambda folder, package=package: huggingface.write(package, folder))


def _sentence_seeds() -> Iterable[Case]:
    facts = {"pooling": "cls", "normalize": True, "max_source": 30}
    package = _text("bert", "wordpiece", "embedding", facts, layers=1, head="none")
    case = written(lambda folder: huggingface.write(package, folder))
    case = {name: data for name, data in case.items() if name.endswith(".json") and name != "tokenizer.json"}
    yield case
    older = {**case, "modules.json": case["modules.json"].replace(b'"path": ""', b'"path": "0_Transformer"')}
    yield {
        name if "/" in name or name == "modules.json" else f"0_Transformer/{name}": data for name, data in older.items()
    }


def _read_model(folder: Path) -> None:
    """Open it, and let it read a text where that is quick."""
    loading.load(folder, "cpu", "torch")


def _read_sentence_folder(folder: Path) -> None:
    """What is beside the model, which is read as any other of Hugging Face: so a case is quick."""
    own = sentence_transformers.transformer_folder(folder)
    loading.product_of(folder)
    sentence_transformers.read(own, 30)


def _read_tokenized(pair: Sequence[Any]) -> None:
    for own in pair:
        for text in TEXTS[:3]:
            ids = own.encode([own.clean(text)])[0]
            own.decode(ids)
            own.pieces(ids)


def _vocabulary_seeds() -> Iterable[Case]:
    for kind in (*KINDS, "words", "characters", "bytes"):
        own = _learned(kind)
        case = written(lambda folder, own=own: (folder.mkdir(), vocabularies.write(folder, (own, own))))
        yield {f"{kind}/{name}": data for name, data in case.items()}


def _read_vocabulary(folder: Path) -> None:
    """Of several kinds at once, if a case was put together so, the first."""
    for own in sorted(path for path in folder.iterdir() if any(path.iterdir()))[:1]:
        _read_tokenized(vocabularies.read(own, {"kind": own.name}))


def _subword_seeds() -> Iterable[Case]:
    yield {"a.spm": _learned("spm").model}


def _read_subwords(folder: Path) -> None:
    for path in folder.iterdir():
        _read_tokenized([sentencepiece.load(path)])


def _pickle_seeds() -> Iterable[Case]:
    held = {"a.weight": torch.ones(2, 3), "b": torch.zeros(4, dtype=torch.float16), "c": torch.arange(5)}
    yield written(lambda folder: (folder.mkdir(), torch.save(held, folder / weights.PICKLE)))
    index = {"metadata": {}, "weight_map": {"a.weight": "x-1.bin", "b": "x-1.bin", "c": "x-1.bin"}}
    one = written(lambda folder: (folder.mkdir(), torch.save(held, folder / "x-1.bin")))
    yield {**one, f"{weights.PICKLE}.index.json": json.dumps(index).encode()}
    yield written(
        lambda folder: (folder.mkdir(), torch.save(held, folder / weights.PICKLE, _use_new_zipfile_serialization=False))
    )


def _checkpoint_seeds() -> Iterable[Case]:
    held = {"a.weight": torch.ones(2, 3), "b": torch.zeros(4)}
    record = {"step": 7, "data": [0, 3], "record": {"best": [[1.5, 7]], "saved": [7]}, "key": "x"}
    case = written(lambda folder: checkpoints.write(folder, 7, held, {"optimizer.step.b": torch.ones(1)}, record))
    yield case
    state = json.loads(case["step-000007/state.json"])
    del state["sha256"]["state.json"]
    yield {**case, "step-000007/state.json": json.dumps(state).encode()}


def _read_checkpoint(folder: Path) -> None:
    checkpoints.read_newest(folder, lambda note: None)


def _run_seeds() -> Iterable[Case]:
    collector = contamination.HashCollector()
    for text in texts()[:9]:
        collector.add(text)

    def write(folder: Path) -> None:
        (folder / "model").mkdir(parents=True)
        (folder / "model" / "model.safetensors").write_bytes(b"x")
        outputs = [("a", "b", "c"), ("d", "e", "f")]
        final_validation.write(
            folder, final_validation.FinalValidation({"bleu": 3.0}, outputs, {"pairs": "9"}, {"ko-en": 2})
        )
        contamination.write(folder / contamination.FILE, {"source": collector})

    yield written(write)


def _read_run(folder: Path) -> None:
    """What reports read of a run: its validation, and which texts it was trained on."""
    if (kept := final_validation.read(folder)) is not None:
        kept.by_direction()
        sources, references, hypotheses = map(list, zip(*kept.outputs, strict=True)) if kept.outputs else ([], [], [])
        assert all(isinstance(text, str) for text in (*sources, *references, *hypotheses))
    trained = contamination.read(folder / contamination.FILE)
    for side in trained.sides:
        assert trained.seen(side, list(TEXTS[:2])).dtype == np.bool_ and isinstance(trained.share(side), float)
    assert contamination.count_seen(trained.after(trained.as_before()), TEXTS[:2], [TEXTS[:2]]).total == 2


READERS: dict[str, Reader] = {
    "model": Reader(_model_seeds, _read_model),
    "huggingface": Reader(_huggingface_seeds, _read_model),
    "sentence-transformers": Reader(_sentence_seeds, _read_sentence_folder),
    "vocabularies": Reader(_vocabulary_seeds, _read_vocabulary),
    "subwords": Reader(_subword_seeds, _read_subwords),
    "pickle": Reader(_pickle_seeds, weights.read),
    "checkpoint": Reader(_checkpoint_seeds, _read_checkpoint),
    "run": Reader(_run_seeds, _read_run),
}
