"""What is measured: the rows of the tables, and who takes part in each."""

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

PAD, UNKNOWN, FIRST, LAST = 0, 1, 2, 3  # as in heed's own vocabularies
SMOOTHING = 0.1


@dataclass(frozen=True)
class Shape:
    """A Transformer with one matrix for source, target and output; `layers` on each side."""

    vocab: int
    dim: int
    heads: int
    hidden: int
    layers: int
    dropout: float


BASE = Shape(32_768, 512, 8, 2048, 6, 0.1)
BIG = Shape(32_768, 1024, 16, 4096, 6, 0.3)
TOY = Shape(512, 32, 2, 64, 1, 0.1)


@dataclass(frozen=True)
class TrainRow:
    """Batches of `slots` on each side, of sentences of 0.6 `length` to `length` tokens, their ends counted."""

    name: str
    shape: Shape
    length: int
    slots: int

    @property
    def sentences(self) -> int:
        return max(1, self.slots // self.length)

    @property
    def shortest(self) -> int:
        return math.ceil(0.6 * self.length)


@dataclass(frozen=True)
class TranslateRow:
    """`batch` sources of `source` tokens, their ends counted; each becomes `target` tokens, and no fewer."""

    name: str
    shape: Shape
    batch: int
    beam: int
    source: int = 25
    target: int = 25


@dataclass(frozen=True)
class TextRow:
    """A language model: trained on `batch` windows of `length` tokens, or writing `length` tokens after `prompt` ones."""

    name: str
    shape: Shape
    batch: int
    length: int
    prompt: int = 0
    sampled: bool = False
    training: bool = False


Row = TrainRow | TranslateRow | TextRow


def train_rows(lengths: Iterable[int]) -> list[TrainRow]:
    """Translators with texts of up to these lengths."""
    return [
        TrainRow(f"{name}-{n}", shape, n, 25_600) for name, shape in (("base", BASE), ("big", BIG)) for n in lengths
    ]


GPT2 = Shape(50_257, 768, 12, 3072, 12, 0.0)
TEXT_ROWS = [
    TextRow("train", GPT2, batch=32, length=1024, training=True),
    TextRow("1-greedy", GPT2, batch=1, length=128, prompt=64),
    TextRow("64-greedy", GPT2, batch=64, length=128, prompt=64),
    TextRow("64-sample", GPT2, batch=64, length=128, prompt=64, sampled=True),
]
ROWS = {
    "train": train_rows((32, 128)),
    "translate": [
        TranslateRow("1-greedy", BASE, 1, 1),
        TranslateRow("1-beam", BASE, 1, 5),
        TranslateRow("32-greedy", BASE, 32, 1),
        TranslateRow("32-beam", BASE, 32, 4),
        TranslateRow("1024-beam", BASE, 1024, 4),
    ],
}  # fmt: skip
CUDA_ONLY = {"1024-beam"}


def quick(row: Row) -> Row:
    """The same row so small that it takes no time, and says nothing about speed."""
    if isinstance(row, TrainRow):
        return dataclasses.replace(row, shape=TOY, length=row.length // 4, slots=max(256, row.length // 4))
    if isinstance(row, TextRow):
        return dataclasses.replace(row, shape=TOY, batch=min(row.batch, 3), length=12, prompt=min(row.prompt, 5))
    return dataclasses.replace(row, shape=TOY, batch=min(row.batch, 3), source=5, target=4)


def packed(row: Row) -> dict:
    """A row as plain values, for another process."""
    return {"kind": type(row).__name__, **dataclasses.asdict(row)}


def unpacked(values: dict) -> Row:
    values = dict(values)
    kind = {"TrainRow": TrainRow, "TranslateRow": TranslateRow, "TextRow": TextRow}[values.pop("kind")]
    return kind(**{**values, "shape": Shape(**values["shape"])})


class System(NamedTuple):
    """Who takes part. `how` is handed to the module's `build`; `number` is the format that weights are read in."""

    name: str
    module: str
    how: str
    needs: str | None = None
    number: str = "float32"

    @property
    def peer(self) -> bool:
        return self.needs is not None


def systems(kind: str, device: str) -> list[System]:
    """All who can take part, heed first."""
    return (_train if kind == "train" else _translate)(device == "cuda")


def _train(cuda: bool) -> list[System]:
    number = "bfloat16" if cuda else "float32"
    own = [("heed", "heed_train", "swift", None)] if cuda else [
        ("heed", "heed_train", "eager", None),
        ("heed-compiled", "heed_train", "compiled", None),
    ]  # fmt: skip
    every = [
        *own,
        ("heed-before", "heed_train", "swift" if cuda else "eager", "before"),
        ("marian", "marian_train", "eager", "transformers"),
        ("marian-compiled", "marian_train", "compiled", "transformers"),
        ("torch", "torch_train", "eager", "torch"),
        ("torch-compiled", "torch_train", "compiled", "torch"),
        ("joeynmt", "joey_train", "eager", "joeynmt"),
    ]
    return [System(*own, number) for own in every]


def _translate(cuda: bool) -> list[System]:
    every = [
        System("heed", "heed_translate", "auto", None, "bfloat16" if cuda else "int8"),
        System("heed-before", "heed_translate", "auto", "before", "bfloat16" if cuda else "int8"),
        System("heed-torch", "heed_translate", "float32"),
        System("heed-bf16", "heed_translate", "bfloat16", None, "bfloat16"),
        System("marian", "marian_translate", "float32", "transformers"),
        System("marian-bf16", "marian_translate", "bfloat16", "transformers", "bfloat16"),
    ]
    if cuda:
        every.append(System("marian-compiled", "marian_translate", "compiled", "transformers", "bfloat16"))
        every.append(System("ctranslate2", "ctranslate2_translate", "float16", "ctranslate2", "bfloat16"))
        every.append(System("ctranslate2-int8", "ctranslate2_translate", "int8_float16", "ctranslate2", "int8"))
    else:
        every.insert(1, System("heed-shortlist", "heed_translate", "shortlist", None, "int8"))
        every.append(System("ctranslate2", "ctranslate2_translate", "float32", "ctranslate2"))
        every.append(System("ctranslate2-int8", "ctranslate2_translate", "int8", "ctranslate2", "int8"))
    return [*every, System("joeynmt", "joey_translate", "float32", "joeynmt")]


def text_systems(row: TextRow, device: str) -> list[System]:
    """All who can take part in a row of language models, heed first."""
    cuda = device == "cuda"
    number = "bfloat16" if cuda else "float32"
    how = "compiled" if cuda else "eager"
    if row.training:
        every = [("heed", "text_heed", "swift" if cuda else "eager", None)]
        every += [
            (f"transformers-{how}", "text_transformers", how, "transformers"),
            (f"torch-{how}", "text_torch", how, "torch"),
        ]
        return [System(*own, number) for own in every]
    own, theirs = (
        System("heed", "text_heed", "auto", None, number),
        System("transformers", "text_transformers", "dynamic", "transformers", number),
    )
    if cuda:
        return [own, theirs, System("transformers-static", "text_transformers", "static", "transformers", number)]
    return [
        own._replace(number="int8"),  # on a CPU with instructions for them
        System("heed-native", "text_heed", "native"),
        System("heed-torch", "text_heed", "torch"),
        System("heed-ctranslate2", "text_heed", "ctranslate2"),
        theirs,
        System("ctranslate2", "text_ctranslate2", "float32", "ctranslate2"),
        System("ctranslate2-int8", "text_ctranslate2", "int8", "ctranslate2", "int8"),
    ]
