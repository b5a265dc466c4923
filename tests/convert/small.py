"""Small models with trained vocabularies, all weights drawn from N(0, 0.2)."""

from functools import cache

import torch
from torch import nn

from heed.data.synthetic import phrasebook
from heed.models.bart import Bart, BartClassifier, BartClassifierConfig, BartConfig
from heed.models.marian import Marian, MarianConfig
from heed.models.package import Package
from heed.models.pegasus import Pegasus, PegasusConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.vocabularies import byte_bpe as bart_files
from heed.vocabularies import marian as marian_files
from heed.vocabularies import pegasus as pegasus_files
from heed.vocabularies.sentencepiece import SubwordsConfig, learn

SIZES = {"dim": 32, "heads": 4, "hidden": 48, "encoder_layers": 1, "decoder_layers": 2, "max_length": 64}
OTHERS = {"marian": (Marian, MarianConfig), "bart": (Bart, BartConfig), "pegasus": (Pegasus, PegasusConfig)}
# how much likelier the end is made, so that sentences have different lengths
ENDS = {"one": 2.5, "two": 2.1, "marian": 3.3, "bart": 2.2, "pegasus": 2.0}


@cache
def pairs():
    return [(pair.source, pair.target) for pair in phrasebook.pairs("train", 200)]


@cache
def vocabularies(kind):
    """Those of source and target: "one" or "two" of heed's own, or of another family."""
    texts = [text for pair in pairs() for text in pair]
    if kind == "one":
        return (learn(texts, SubwordsConfig(), 600),) * 2
    if kind == "two":
        return tuple(
            learn(side, SubwordsConfig(), n) for side, n in zip(zip(*pairs(), strict=True), (560, 400), strict=True)
        )
    family, size = {"marian": (marian_files, 700), "bart": (bart_files, 500), "pegasus": (pegasus_files, 550)}[kind]
    return family.learn(texts, size)


@torch.no_grad()
def drawn(model, seed=0):
    torch.manual_seed(seed)
    for weight in (*model.parameters(), *(b for name, b in model.named_buffers() if name == "bias")):
        nn.init.normal_(weight, std=0.2)
    return model.eval().requires_grad_(False)


def package(kind, room=0, **shape):
    """A model for these vocabularies; `room` is for more than they have."""
    own = vocabularies(kind)
    shape = {"vocab_size": len(own[1]) + room, **SIZES, **shape}
    if kind in OTHERS:
        model, config = OTHERS[kind]
        return Package(drawn(model(config(**shape))), own, {})
    if kind == "two":
        shape = {"tied": "target", "source_vocab_size": len(own[0]), **shape}
    return Package(drawn(Transformer(TransformerConfig(**shape))), own, {})


def classifier(labels=("no", "perhaps", "yes")):
    own = vocabularies("bart")
    config = BartClassifierConfig(vocab_size=len(own[1]), labels=len(labels), **SIZES)
    return Package(drawn(BartClassifier(config)), own, {"labels": list(labels)})


def speaking(package, ends=1.0):
    """Norms that leave things large and an end that is likely: sentences differ, and so do their lengths."""
    for module in package.model.modules():
        if isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
    for layer in package.model.decoder.layers:
        for part in (layer.attention.body.out, layer.cross.body.out, layer.mlp.body.down):
            part.weight *= 4
    package.model.bias[package.subwords[1].marks.last] += ends
    return package
