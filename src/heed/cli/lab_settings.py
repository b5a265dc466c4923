"""The experiments of heed lab: what each shows, and its settings."""

from pathlib import Path
from typing import Any

from heed.lab.language import LANGUAGES, system_language

LABS = {
    "attention": "from a dictionary to eight heads: similarity, a worked example with three words, masks and padding",
    "order": "what a Transformer loses without positions, measured in BLEU",
    "gradients": "how far a gradient reaches through RNN, GRU, LSTM and self-attention",
    "positions": "sinusoidal positions: norms and distances, compared with learned positions",
    "scaling": "why scores are divided by √d_k: variance, entropy and gradient of the softmax",
    "complexity": "operations, path lengths, time and memory of attention, recurrence and convolution",
    "norms": "layer norm versus batch norm, and gradients through deep stacks with a part removed",
    "schedule": "why the learning rate warms up: four schedules, each trained with post-norm and pre-norm",
    "words": "ice and steam: co-occurrence ratios; skip-gram, GloVe and fastText; next-word prediction by three models",
    "bias": "inductive bias: convolution, recurrence and attention trained on tasks that favour each",
    "errata": "every number worked out in the lecture notes, compared with Heed's",
    "bottleneck": "BLEU by source length: the limits of a fixed-size vector",
}


def _number(default: int, line: str, shown: str = "") -> dict[str, Any]:
    return {"type": int, "default": default, "help": f"{line} (default: {shown or default})"}


COMMON = {
    "--out": {
        "type": Path,
        "required": True,
        "metavar": "DIR",
        "help": "output folder for the plot, the numbers and the page",
    },
    "--lang": {
        "choices": LANGUAGES,
        "default": system_language(),
        "help": f"language of tables, plots and pages (default: {system_language()}, from the system locale)",
    },
    "--threads": {"type": int, "help": "number of CPU threads (default: all cores)"},
}
SEED = _number(0, "random seed")
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "attention": {"--seed": SEED},
    "order": {"--seed": SEED, "--steps": _number(150, "training steps for each of the six models")},
    "gradients": {
        "--seed": SEED,
        "--dim": _number(32, "hidden size"),
        "--length": _number(41, "text length; distances go up to one less"),
        "--draws": _number(6, "number of random initializations to average over"),
    },
    "positions": {
        "--dim": _number(64, "dimension of the positions (even)"),
        "--length": _number(64, "number of positions"),
        "--model": {"metavar": "FOLDER", "help": "a run or a model with learned positions"},
    },
    "scaling": {"--seed": SEED, "--keys": _number(64, "number of keys per query")},
    "complexity": {
        "--seed": SEED,
        "--dim": _number(128, "dimension d, while the length n varies"),
        "--length": _number(128, "length n, while the dimension d varies"),
        "--tokens": _number(0, "tokens per batch; the upper limit of n", "512 on a CPU, 4096 on a GPU"),
        "--device": {"default": "auto", "help": "auto (the CPU, and a GPU if available), cpu, cuda, cuda:1"},
    },
    "norms": {
        "--seed": SEED,
        "--dim": _number(64, "layer dimension"),
        "--layers": _number(24, "number of layers"),
        "--length": _number(16, "text length"),
        "--draws": _number(3, "number of random initializations to average over"),
    },
    "schedule": {
        "--seed": SEED,
        "--dim": _number(32, "layer dimension"),
        "--layers": _number(6, "number of encoder layers, and of decoder layers"),
        "--steps": _number(140, "training steps per model"),
        "--warmup": _number(35, "warm-up steps, for schedules with warm-up"),
        "--peak": {"type": float, "default": 0.01, "help": "peak learning rate (default: 0.01)"},
    },
    "words": {
        "--seed": SEED,
        "--sentences": _number(
            100_000, "number of sentences to count words in; vectors are trained on the first 20,000", "100,000"
        ),
        "--dim": _number(32, "dimension of the word vectors; the language models have twice as many"),
        "--epochs": _number(2, "training epochs for the vectors"),
        "--heard": _number(12_800, "number of training sentences for each language model", "12,800"),
    },
    "bias": {
        "--seed": SEED,
        "--dim": _number(32, "layer dimension"),
        "--steps": _number(200, "training steps per model"),
        "--rows": _number(64, "batch size"),
    },
    "errata": {
        "--seed": SEED,
        "--dim": _number(512, "d in equation (6), whose scores are divided by √d or by √d_h"),
        "--heads": _number(8, "number of heads in equation (6)"),
        "--tokens": _number(256, "number of random words to measure scores on"),
    },
    "bottleneck": {
        "system": {"nargs": "+", "help": "a run, a model folder or a file of translations; NAME=FOLDER sets its label"},
        "--source": {"required": True, "metavar": "FILE", "help": "what to translate"},
        "--reference": {"required": True, "metavar": "FILE", "help": "the reference translations"},
        "--groups": _number(6, "number of length groups"),
        "--device": {"default": "auto", "help": "auto (a GPU if available), cpu, cuda, cuda:1"},
    },
    "all": {
        "--seed": SEED,
        "--model": {"metavar": "FOLDER", "help": "for positions: a run or a model with learned positions"},
        "--device": {"default": "auto", "help": "for complexity: auto, cpu, cuda, cuda:1"},
    },
}
