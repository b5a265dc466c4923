"""One model with drawn weights in the formats of all who translate: `python -m bench.shared FOLDER ROW FORMAT ...`."""

import json
import struct
import sys
from pathlib import Path

import numpy as np
import torch

from bench.rows import LAST, Shape, unpacked
from heed.convert import ctranslate2, ctranslate2_names, huggingface
from heed.data import shortlist
from heed.data.synthetic import phrasebook
from heed.loading import write_package
from heed.models.package import Package
from heed.models.transformer import Transformer, TransformerConfig
from heed.vocabularies.sentencepiece import Subwords, SubwordsConfig, learn


def vocabulary(size: int) -> Subwords:
    """A small one that was learned, filled up with pieces that no text has."""
    texts = [pair.target for pair in phrasebook.pairs("train", 100)]
    small = learn(texts, SubwordsConfig(), min(size, 400))
    return Subwords(small.model + b"".join(_piece(f"▁no{i}") for i in range(len(small), size)))


def _piece(text: str) -> bytes:
    """A further piece as SentencePiece writes it down: messages one after another are merged."""
    name = text.encode()
    said = b"\x0a" + bytes([len(name)]) + name + b"\x15" + struct.pack("<f", -1e4)
    return b"\x0a" + bytes([len(said)]) + said


def package(s: Shape) -> Package:
    torch.manual_seed(1)
    sizes = {"dim": s.dim, "heads": s.heads, "hidden": s.hidden, "encoder_layers": s.layers, "decoder_layers": s.layers}
    model = Transformer(TransformerConfig(s.vocab, max_length=256, **sizes)).eval().requires_grad_(False)
    _enliven(model)
    return Package(model, "translation", dict.fromkeys(("source", "target"), vocabulary(s.vocab)), {})


def _enliven(model: Transformer) -> None:
    """With initial weights all texts become the same; with attention that chooses, they do not.

    Chosen by trial: with 12 instead of 8 rounding begins to decide what is said, and to agree would be luck.
    """
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.attention.body.q.weight *= 8
        layer.mlp.body.down.weight *= 0.1
    for layer in model.decoder.layers:
        layer.cross.body.q.weight *= 8
        layer.attention.body.out.weight *= 3
        layer.cross.body.out.weight *= 3


def few(vocab: int) -> str:
    """A shortlist as long as those of large vocabularies are: of a sentence about 1,000 subwords, of sixteen about 6,000."""
    chance, names = np.random.default_rng(1), ctranslate2_names.names(vocabulary(vocab))
    always = chance.permutation(vocab)[: vocab // 50]
    each = {i: chance.integers(LAST + 1, vocab, 16) for i in range(LAST + 1, vocab)}
    return shortlist.to_text(shortlist.Shortlist(always, each), (names, names))


def write(folder: Path, shape: Shape, formats: list[str]) -> None:
    own = package(shape)
    write_package(own, folder / "heed")
    write_package(own._replace(shortlist=few(shape.vocab)), folder / "heed-shortlist")
    if "transformers" in formats:
        huggingface.write(own, folder / "huggingface")
    if "ctranslate2" in formats:
        ctranslate2.write(own, folder / "ctranslate2")
    if "joeynmt" in formats:
        np.savez(folder / "weights.npz", **{name: part.numpy() for name, part in own.model.state_dict().items()})


if __name__ == "__main__":
    write(Path(sys.argv[1]), unpacked(json.loads(sys.argv[2])).shape, sys.argv[3:])
