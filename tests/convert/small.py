"""Small models with trained vocabularies, all weights drawn from N(0, 0.2)."""

from functools import cache

import torch
from torch import nn

from heed.models.bart import Bart, BartConfig
from heed.models.marian import Marian, MarianConfig
from heed.models.package import Package
from heed.models.pegasus import Pegasus, PegasusConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.vocabularies import byte_bpe as bart_files
from heed.vocabularies import marian as marian_files
from heed.vocabularies import pegasus as pegasus_files
from heed.vocabularies.labels import Labels
from heed.vocabularies.sentencepiece import SubwordsConfig, learn
from tests import fixed_pairs

SIZES = {"dim": 32, "heads": 4, "hidden": 48, "encoder_layers": 1, "decoder_layers": 2, "max_length": 64}
TASKS = {"pegasus": "gap-sentences"}
OTHERS = {"marian": (Marian, MarianConfig), "bart": (Bart, BartConfig), "pegasus": (Pegasus, PegasusConfig)}
# how much likelier the end is made, so that sentences have different lengths
ENDS = {"one": 2.5, "two": 2.1, "marian": 3.3, "bart": 2.2, "pegasus": 2.0}


@cache
def pairs():
    return [(pair.source, pair.target) for pair in fixed_pairs.pairs("train", 200)]


@cache
def vocabularies(kind):
    """Those of source and target: heed's own, "one" for both or "two", or those of another system."""
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
    """A model for these vocabularies, with `room` ids more than they have."""
    source, target = vocabularies(kind)
    shape = {"vocab_size": len(target) + room, **SIZES, **shape}
    if kind == "two":
        shape = {"tied": "target", "source_vocab_size": len(source), **shape}
    model, config = OTHERS.get(kind, (Transformer, TransformerConfig))
    return Package(
        drawn(model(config(**shape))), TASKS.get(kind, "translation"), {"source": source, "target": target}, {}
    )


def classifier(labels=("no", "perhaps", "yes")):
    text, _ = vocabularies("bart")
    model = Bart(BartConfig(vocab_size=len(text), labels=len(labels), **SIZES))
    return Package(drawn(model), "classification", {"text": text, "labels": Labels(labels)}, {})


def speaking(package, ends=1.0):
    """Norms that leave things large and an end that is likely: sentences differ, and so do their lengths."""
    for module in package.model.modules():
        if isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
    for layer in package.model.decoder.layers:
        for part in (layer.attention.body.out, layer.cross.body.out, layer.mlp.body.down):
            part.weight *= 4
    package.model.bias[package.vocabularies[1].special.last] += ends
    return package
