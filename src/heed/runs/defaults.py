"""The default settings of `heed train`: rules that depend on the data and the machine. Each rule says why, and where
it was measured (docs/guides/defaults.md has the tables). Settings given by the user are never changed; the choices
are printed, and saved in recipe.toml of the run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, NamedTuple

import torch

from heed.runs.ending import SHORT
from heed.runs.text_amount import VOCABULARY, Amount
from heed.training.duration import in_words

COOLDOWN = 0.25  # share of a run, at its end, in which the rate falls to zero
TUNING_RATE = 0.0002  # for a model 512 wide, a seventh of the rate of a new one
CPU_TIME = "1h"  # the default on a CPU: enough for a useful model of a small corpus
MODEL_SIZES = ("dim", "heads", "hidden", "encoder_layers", "decoder_layers")
LARGE = (512, 8, 2048, 6, 6)
MEDIUM = (512, 8, 1024, 4, 4)
SMALL = (256, 4, 1024, 4, 4)
TINY = (128, 4, 512, 4, 4)
LEAST = (128, 4, 512, 3, 3)
GPU_EXAMPLE = "For comparison: Multi30k en-de (29,000 pairs) reaches 43.1 BLEU in five minutes on an H200, or 38.1 in 25 minutes on two CPU cores (docs/guides/defaults.md#measured)."
EPOCHS = {LARGE: 20, MEDIUM: 20, SMALL: 20, TINY: 6, LEAST: 0}  # from how many passes over the corpus on a size pays


@dataclass(frozen=True)
class Facts:
    """The input of the rules. `speed` returns the training speed of a model size here, in tokens per second.
    `tuning`: a trained model is fine-tuned (--from), so size and vocabulary are its own. `steps`: those set by the user.

    What depends on how much there is to learn (size, regularization, vocabulary) goes by `text.characters`: a text
    that is read twice teaches nothing more. What depends on the length of an epoch (passes, batches, steps) goes by
    `text.read` and `tokens`, in which a corpus counts as often as its weight says.
    """

    text: Amount
    gpu: bool
    seconds: float | None = None
    speed: Callable[[Sequence[int]], float] = field(default=lambda size: float("inf"), compare=False)
    tuning: bool = False
    steps: int | None = None

    @property
    def tokens(self) -> int:
        """The tokens of one side in an epoch, roughly; of a trained model, with a vocabulary of the usual size."""
        size = VOCABULARY if self.tuning else _vocabulary(self)["subwords.size"]
        return max(1, int(self.text.tokens_with(size) / 2))

    def epochs(self, size: Sequence[int]) -> float:
        """How many epochs fit the time budget."""
        return float("inf") if self.seconds is None else 0.85 * self.seconds * self.speed(size) / self.tokens


class Rule(NamedTuple):
    """`choose` returns settings by name. `reason` is printed; `measured` are the places of the evidence, none if the
    values are those that are common in the field.
    """

    title: str
    choose: Callable[[Facts], Mapping[str, Any]]
    reason: str
    measured: tuple[str, ...] = ()


def _fitting_size(facts: Facts) -> tuple[int, ...]:
    """The largest size that the corpus and the time allow."""
    wanted = LARGE if facts.text.characters >= 5_000_000 else MEDIUM if facts.text.characters >= 800_000 else SMALL
    sizes = list(EPOCHS)[list(EPOCHS).index(wanted) :]
    if facts.gpu:
        return next(size for size in sizes if facts.epochs(size) >= EPOCHS[size])
    # On a CPU a step of a large model takes seconds, and where a size is too large, larger ones are too: so they are
    # not measured.
    fitting = takewhile(lambda size: facts.epochs(size) >= EPOCHS[size], reversed(sizes[:-1]))
    return [sizes[-1], *fitting][-1]


def _size(facts: Facts) -> Mapping[str, Any]:
    return {f"model.{name}": value for name, value in zip(MODEL_SIZES, _fitting_size(facts), strict=True)}


def _regularization(facts: Facts) -> Mapping[str, Any]:
    if facts.epochs(_fitting_size(facts)) < 60:  # R-Drop takes twice the time
        return {"model.dropout": 0.1, "task.r_drop": 0.0, "subwords.sampling": 0.0}
    if facts.text.characters < 5_000_000:
        return {"model.dropout": 0.3, "task.r_drop": 5.0, "subwords.sampling": 0.1}
    if facts.text.characters < 100_000_000:
        return {"model.dropout": 0.2, "task.r_drop": 2.0, "subwords.sampling": 0.1}
    return {"model.dropout": 0.1, "task.r_drop": 0.0, "subwords.sampling": 0.0}


def vocabulary_size(characters: int, device: torch.device) -> int:
    if device.type == "cpu" or characters < 800_000:
        return 4000
    if characters < 5_000_000:
        return 8000
    return min(32_000, round(16 * max(1.0, characters / 2e7) ** 0.5) * 1000)


def _vocabulary(facts: Facts) -> Mapping[str, Any]:
    return {"subwords.size": vocabulary_size(facts.text.characters, torch.device("cuda" if facts.gpu else "cpu"))}


def _batch_tokens(facts: Facts) -> int:
    if not facts.gpu:
        return 1024
    return 8192 if facts.text.read < 5_000_000 else 16_384 if facts.text.read < 100_000_000 else 32_768


def _batches(facts: Facts) -> Mapping[str, Any]:
    return {"training.batch_tokens": _batch_tokens(facts)}


def _expected_steps(facts: Facts) -> float:
    """The number of steps, or roughly how many fit the time budget."""
    size = _fitting_size(facts)
    passes = 2 if _regularization(facts)["task.r_drop"] else 1
    within = facts.epochs(size) * facts.tokens / _batch_tokens(facts) / passes
    return within if facts.steps is None else float(min(within, facts.steps))


def pace(facts: Facts) -> tuple[float, float]:
    """Seconds per step, and target tokens per second, of the size that is chosen."""
    speed, passes = facts.speed(_fitting_size(facts)), 2 if _regularization(facts)["task.r_drop"] else 1
    return passes * _batch_tokens(facts) / speed, speed


def _schedule(facts: Facts) -> Mapping[str, Any]:
    rate = 0.0014 * (512 / _fitting_size(facts)[0]) ** 0.5
    return {"training.rate": round(rate, 4), "training.warmup": int(min(1000, max(50, _expected_steps(facts) / 10)))}


def _ending(facts: Facts) -> Mapping[str, Any]:
    if facts.seconds is not None:
        few = facts.seconds / 150 if facts.seconds < SHORT else 4  # a validation may take a tenth of a short run
        validations = min(20, max(1, few, facts.seconds / 200))
        steps, every = 1_000_000, int(min(1000, max(20, _expected_steps(facts) / validations)))
    else:
        steps = int(min(100_000, max(8000, 20 * facts.tokens / _batch_tokens(facts))))
        every = int(min(500, max(20, _expected_steps(facts) / 16)))
    return {
        "training.steps": steps,
        "training.valid_every": every,
        "training.patience": 6,
        "training.cooldown": COOLDOWN,
    }


def _weights(facts: Facts) -> Mapping[str, Any]:
    return {"training.final": "best-ema", "training.ema": 0.999}


def _search(facts: Facts) -> Mapping[str, Any]:
    return {"decoding.length_penalty": 1.0, "task.tune_length_penalty": 200}


WORTH = "docs/guides/defaults.md#what-each-rule-is-worth"  # has a row for each rule
EXPLORED = "docs/guides/defaults.md#explorations"
TIMED = "docs/guides/defaults.md#time-limits"
PENALTIES = "docs/guides/defaults.md#search"
TUNED = "docs/results.md#pre-training-then-fine-tuning-on-500-pairs"

RULES = (
    Rule("size", _size, "as large as the corpus and the time allow", (WORTH, EXPLORED, TIMED)),
    Rule("regularization", _regularization, "prevents overfitting on small corpora", (WORTH, EXPLORED, TIMED)),
    Rule("vocabulary", _vocabulary, "each subword is frequent enough to be learned", (WORTH, EXPLORED)),
    Rule("batches", _batches, "suits the device", (WORTH, EXPLORED)),
    Rule("learning rate", _schedule, "the highest that is stable with pre-norm", (WORTH, EXPLORED)),
    Rule("end", _ending, "while validation improves; then the learning rate decays to zero", (WORTH, TIMED)),
    Rule("weights", _weights, "the moving average of the weights, at its best validation", (WORTH,)),
    Rule("search", _search, "chosen on validation sentences at the end, if one is clearly better", (WORTH, PENALTIES)),
)  # fmt: skip


def _tuning_batch_tokens(facts: Facts) -> int:
    """A power of two, so that an epoch has fifty steps if possible."""
    return (
        1024
        if not facts.gpu
        else next(size for size in (8192, 4096, 2048, 1024, 0) if facts.tokens >= 50 * size) or 1024
    )


def _tuning_steps(facts: Facts) -> int:
    if facts.steps is not None:
        return facts.steps
    return int(min(20_000, max(1000, 20 * facts.tokens / _tuning_batch_tokens(facts))))


def _tuning_batches(facts: Facts) -> Mapping[str, Any]:
    return {"training.batch_tokens": _tuning_batch_tokens(facts)}


def _tuning_schedule(facts: Facts) -> Mapping[str, Any]:
    return {"training.rate": TUNING_RATE, "training.warmup": max(1, min(200, _tuning_steps(facts) // 20))}


def _tuning_end(facts: Facts) -> Mapping[str, Any]:
    steps = _tuning_steps(facts)
    every = min(500, max(20, steps // 25))
    return {
        "training.steps": steps,
        "training.valid_every": every,
        "training.patience": 5,
        "training.cooldown": COOLDOWN,
    }


def _tuning_weights(facts: Facts) -> Mapping[str, Any]:
    return {"training.final": "best-ema", "training.ema": 0.999}


TUNING_RULES = (
    Rule("batches", _tuning_batches, "small batches, so that a small corpus gives many steps"),
    Rule("learning rate", _tuning_schedule, "a seventh of that for a new model, to keep what it knows", (TUNED,)),
    Rule("end", _tuning_end, "at most twenty epochs, while validation improves"),
    Rule("weights", _tuning_weights, "the moving average, starting from the trained model, at its best validation"),
)  # fmt: skip
OF_THE_MODEL = ("size", "regularization", "vocabulary")  # the rules whose choices a GPU makes larger


class Choice(NamedTuple):
    """What one rule chose, without what the user had set."""

    rule: Rule
    settings: Mapping[str, Any]

    def values(self) -> str:
        return f"{self.rule.title}: " + ", ".join(f"{name.split('.')[1]} {own}" for name, own in self.settings.items())

    def describe(self) -> str:
        return f"{self.values()} ({self.rule.reason})"


def choose(facts: Facts, explicit: frozenset[str]) -> list[Choice]:
    """What the rules choose for settings that are not among the `explicit` ones."""
    found = []
    for rule in TUNING_RULES if facts.tuning else RULES:
        settings = {name: value for name, value in rule.choose(facts).items() if not _is_set(name, explicit)}
        if settings:
            found.append(Choice(rule, settings))
    return found


def _is_set(name: str, explicit: frozenset[str]) -> bool:
    """Whether the user has set this, or something it would contradict."""
    if name in explicit:
        return True
    if name.startswith("model."):
        return "model.preset" in explicit and name.split(".")[1] in (*MODEL_SIZES, "dropout")
    if name == "task.tune_length_penalty":
        return "decoding.length_penalty" in explicit
    if name == "task.r_drop":
        return "task.teacher" in explicit
    if name.startswith("subwords."):
        return bool({"subwords.kind", "subwords.source_model", "subwords.target_model"} & explicit)
    return name in ("training.final", "training.ema") and bool({"training.final", "training.ema"} & explicit)


def budget(time: str | None, gpu: bool, explicit: frozenset[str]) -> str | None:
    """The time budget of a run: the user's or, on a CPU, an hour unless the number of steps is set."""
    if time is not None or gpu or "training.steps" in explicit:
        return time
    return CPU_TIME


def summary(facts: Facts, choices: Sequence[Choice]) -> list[str]:
    """What was chosen and why, in a few lines."""
    if not choices:
        return []
    where = "a GPU" if facts.gpu else "a CPU"
    time = f", {in_words(facts.seconds)} at most" if facts.seconds else ""
    what = "fine-tuning on " if facts.tuning else ""
    once, epoch = (f"{count / 1e6:.1f}" for count in (facts.text.characters, facts.text.read))
    weighted = f", {epoch} with weights" if epoch != once else ""
    first = f"Chosen for {what}{facts.text.pairs:,} pairs ({once} million characters{weighted}) on {where}{time}:"
    return [
        first,
        *(f"  {choice.describe()}" for choice in choices),
        *(f"  {line}" for line in on_a_gpu(facts, choices)),
        "  --set section.name=value overrides any of them.",
    ]


def on_a_gpu(facts: Facts, choices: Sequence[Choice]) -> list[str]:
    """On a CPU: how the model would differ on a GPU, with an example of the result."""
    if facts.gpu:
        return []
    other, found = replace(facts, gpu=True, seconds=None), []
    for rule, settings in choices:
        if rule.title not in OF_THE_MODEL:
            continue
        there = {name: value for name, value in rule.choose(other).items() if value != settings.get(name, value)}
        found += [Choice(rule, there).values()] if there else []
    if not found:
        return []
    return [f"On a GPU, training while validation improves, it would be {'; '.join(found)}.", GPU_EXAMPLE]
