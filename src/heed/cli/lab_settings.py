"""The measurements of heed lab: what each shows, and its settings."""

from pathlib import Path
from typing import Any

from heed.lab.language import LANGUAGES, system_language

LABS = {
    "attention": "from a dictionary to eight heads: similarity, three words by hand, masks and padding",
    "order": "what a Transformer loses without positions: a set of words, and BLEU of what it learns",
    "gradients": "how far a gradient reaches through RNN, GRU, LSTM and self-attention",
    "positions": "sinusoids: their norms, their distances, and positions that were learned",
    "scaling": "why scores are divided by √d_k: variance, entropy and gradient of the softmax",
    "complexity": "operations, longest paths, time and memory of attention, recurrence and convolution",
    "norms": "layer norm beside batch norm, and the gradient through deep stacks with a part left out",
    "schedule": "why the learning rate warms up: four schedules, with post-norm and with pre-norm, trained",
    "words": "ice and steam: co-occurrence ratios; skip-gram, GloVe and fastText trained; the next word by three models",
    "bias": "inductive bias: convolution, recurrence and attention trained on tasks that favour each",
    "errata": "every worked number of the lecture notes beside Heed's, and why some differ",
    "bottleneck": "BLEU of several models by the length of the source: what a fixed vector cannot hold",
}


def _number(default: int, line: str, shown: str = "") -> dict[str, Any]:
    return {"type": int, "default": default, "help": f"{line} ({shown or default})"}


COMMON = {
    "--out": {"type": Path, "required": True, "metavar": "DIR", "help": "a folder for picture, numbers and page"},
    "--lang": {
        "choices": LANGUAGES,
        "default": system_language(),
        "help": f"the language of tables, pictures and pages (by the system's locale: {system_language()})",
    },
    "--threads": {"type": int, "help": "how many threads to use on the CPU"},
}
SEED = _number(0, "of the random numbers")
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "attention": {"--seed": SEED},
    "order": {"--seed": SEED, "--steps": _number(150, "how long to train each of the six translators")},
    "gradients": {
        "--seed": SEED,
        "--dim": _number(32, "the size of hidden states"),
        "--length": _number(41, "the length of a text: distances are up to one less"),
        "--draws": _number(6, "over how many random initializations to average"),
    },
    "positions": {
        "--dim": _number(64, "the dimension of positions, an even number"),
        "--length": _number(64, "how many positions"),
        "--model": {"metavar": "FOLDER", "help": "a run or a model with learned positions"},
    },
    "scaling": {"--seed": SEED, "--keys": _number(64, "how many keys share the attention of a query")},
    "complexity": {
        "--seed": SEED,
        "--dim": _number(128, "the dimension d, while the length n varies"),
        "--length": _number(128, "the length n, while the dimension d varies"),
        "--tokens": _number(0, "tokens in a batch, which n does not exceed", "512 on a CPU, 4096 on a GPU"),
        "--device": {"default": "auto", "help": "auto (the CPU, and a GPU if there is one), cpu, cuda, cuda:1"},
    },
    "norms": {
        "--seed": SEED,
        "--dim": _number(64, "the dimension of the layers"),
        "--layers": _number(24, "how deep the stacks are"),
        "--length": _number(16, "the length of a text"),
        "--draws": _number(3, "over how many random initializations to average"),
    },
    "schedule": {
        "--seed": SEED,
        "--dim": _number(32, "the dimension of the layers"),
        "--layers": _number(6, "layers of the encoder, and as many of the decoder"),
        "--steps": _number(140, "how long each training is"),
        "--warmup": _number(35, "in how many steps the learning rate rises, where it does"),
        "--peak": {"type": float, "default": 0.01, "help": "the highest learning rate (0.01)"},
    },
    "words": {
        "--seed": SEED,
        "--sentences": _number(
            100_000, "sentences in which words are counted; vectors are trained on the first 20,000", "100,000"
        ),
        "--dim": _number(32, "numbers a word; the language models have twice as many"),
        "--epochs": _number(2, "passes over the text for the vectors"),
        "--heard": _number(12_800, "sentences that each language model is trained on", "12,800"),
    },
    "bias": {
        "--seed": SEED,
        "--dim": _number(32, "the dimension of the layers"),
        "--steps": _number(200, "how long each training is"),
        "--rows": _number(64, "rows in a batch"),
    },
    "errata": {
        "--seed": SEED,
        "--dim": _number(512, "the d of equation (6), whose scores are divided by √d or by √d_h"),
        "--heads": _number(8, "the heads of equation (6)"),
        "--tokens": _number(256, "random words whose scores are measured there"),
    },
    "bottleneck": {
        "system": {"nargs": "+", "help": "a run, a model folder or a file of translations; NAME=FOLDER calls it NAME"},
        "--source": {"required": True, "metavar": "FILE", "help": "what to translate"},
        "--reference": {"required": True, "metavar": "FILE", "help": "the reference translations"},
        "--groups": _number(6, "into how many groups of lengths to sort the sentences"),
        "--device": {"default": "auto", "help": "auto (a GPU if there is one), cpu, cuda, cuda:1"},
    },
    "all": {
        "--seed": SEED,
        "--model": {"metavar": "FOLDER", "help": "for positions: a run or a model with learned positions"},
        "--device": {"default": "auto", "help": "for complexity: auto, cpu, cuda, cuda:1"},
    },
}
