"""Encoders of each family and head in the proportions of the published ones, with few layers, and all weights from N(0, 0.2)."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from torch import nn

from heed.models import MODELS
from heed.models.package import Package
from heed.nn.transformer import Layer
from heed.vocabularies.folder import KINDS
from heed.vocabularies.labels import Labels
from tests.data.mixed import training

SIZES = {"dim": 24, "heads": 3, "hidden": 96, "layers": 2, "max_length": 72}
OWN = {
    "bert": {},
    "albert": {"embedding": 8, "layers": 4, "groups": 2, "group_layers": 1},
    "roberta": {},
    "electra": {"embedding": 16},
    "bigbird": {"block": 4, "random_blocks": 2, "max_length": 76},
}
# the class of transformers for each head
COMMON = {
    "none": "{}Model", "masked": "{}ForMaskedLM", "classification": "{}ForSequenceClassification", "tokens": "{}ForTokenClassification",
    "choice": "{}ForMultipleChoice", "answer": "{}ForQuestionAnswering",
}  # fmt: skip
MORE = {
    "bert": (
        "Bert",
        {"causal": "{}LMHeadModel", "pretraining": "{}ForPreTraining", "pair": "{}ForNextSentencePrediction"},
    ),
    "albert": ("Albert", {"pretraining": "{}ForPreTraining"}),
    "roberta": ("Roberta", {"causal": "{}ForCausalLM"}),
    "electra": ("Electra", {"causal": "{}ForCausalLM", "replaced": "{}ForPreTraining"}),
    "bigbird": ("BigBird", {"causal": "{}ForCausalLM", "pretraining": "{}ForPreTraining"}),
}
CASES = {
    (system, head): name.format(family)
    for system, (family, more) in MORE.items()
    for head, name in {**COMMON, **more}.items()
}


@cache
def vocabulary(kind: str):
    return KINDS[kind].learn(training(), 500)[0]


def package(system: str, head: str, **changes) -> Package:
    """A model with this head in float32, and its vocabulary."""
    own = MODELS[system]
    text = vocabulary(own.vocabulary)
    labels = {"classification": 3, "tokens": 5}.get(head, 0)
    data = {"vocab_size": len(text), "head": head, "labels": labels}
    data |= {"roberta": {"pad": text.special.pad}, "bigbird": {"separator": text.special.last}}.get(system, {})
    torch.manual_seed(1)
    model = own.model(own.config(**{**SIZES, **OWN[system], **data, **changes})).eval().requires_grad_(False)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.2)
    names = {"labels": Labels([f"label {i}" for i in range(labels)])} if labels else {}
    return Package(model, "any", {"text": text, **names}, {})


@contextmanager
def all_states(model: nn.Module) -> Iterator[list[torch.Tensor]]:
    """Within this block, collect what each layer of an encoder gives, after what the first one gets."""
    states: list[torch.Tensor] = []

    def keep(layer, inputs, output) -> None:
        states.extend([*([] if states else inputs[:1]), output])

    hooks = [own.register_forward_hook(keep) for own in model.modules() if type(own) is Layer]
    try:
        yield states
    finally:
        for hook in hooks:
            hook.remove()


def key_counts(random: torch.Tensor, size: int) -> torch.Tensor:
    """How often each key counts for each query of a BigBird with blocks of this size: the first and the last block see all once,
    others those two and their neighbours once, and each of their `random` blocks (head, block, number) once more.
    """
    heads, middle, _ = random.shape
    counts = torch.zeros(heads, middle + 2, middle + 2)
    for block in range(middle + 2):
        alone = block in (0, middle + 1)
        counts[:, block, list(range(middle + 2) if alone else {0, block - 1, block, block + 1, middle + 1})] = 1
    for head in range(heads):
        for block in range(middle):
            for drawn in random[head, block].tolist():
                counts[head, block + 1, drawn] += 1
    return counts.repeat_interleave(size, dim=1).repeat_interleave(size, dim=2)


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    """Tokens that are no special ones."""
    return torch.randint(10, 400, shape, generator=torch.Generator().manual_seed(seed))
