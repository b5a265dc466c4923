"""What a scene of `make check-faults` is made of: the commands that make it, and those that meet its damaged files."""

from dataclasses import dataclass, field

SMALL = {
    "training.threads": 1, "training.auto": "false", "training.steps": 4, "training.valid_every": 2, "training.log_every": 1,
    "training.batch_tokens": 300, "training.valid_tokens": 4000, "training.samples": 1, "training.warmup": 2,
}  # fmt: skip
SHAPE = {"model.dim": 16, "model.heads": 2, "model.hidden": 32, "model.dropout": 0.1}
FILES = "--source data/train.ko --target data/train.en --valid-source data/valid.ko --valid-target data/valid.en"


@dataclass(frozen=True)
class Probe:
    """The next commands, what they leave, and the files whose damage they may meet.

    `before` are commands that record sizes and times of files. They run first, and the damage then keeps the time and the inode,
    as a bit does that a disk has lost.
    """

    name: str
    commands: tuple[str, ...]
    results: tuple[str, ...] = ()
    files: tuple[str, ...] = ("run/**/*",)
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scene:
    """`make` are the commands that make it; `other` those of another run of the same data, for files that change places."""

    name: str
    make: tuple[str, ...]
    probes: tuple[Probe, ...]
    other: tuple[str, ...] = ()
    kill: str = ""  # the last command of `make` is killed at its third write to a file of this name
    left_out: tuple[str, ...] = field(default=("run/.lock",))


def sets(settings: dict, **more) -> str:
    changes = settings | {name.replace("__", "."): value for name, value in more.items()}
    return " ".join(f"--set {name}={value}" for name, value in changes.items())


MODEL = ("run/model/*",)
RESULT = ("run/model/model.safetensors", "run/model/config.json", "run/model/shortlist.txt", "run/validation.json")
CHECKPOINTS, CACHE = ("run/checkpoints/**/*",), ("cache/**/*",)
RUN = ("run/*", *MODEL, *CHECKPOINTS)


def train(settings: dict, files: str = FILES, seed: int = 1, run: str = "run") -> str:
    return f"train {files} --out {run} --quiet --no-report {sets({**settings, 'training.seed': seed})}"


def resumed(steps: int, files: tuple[str, ...] = (*RUN, *CACHE)) -> Probe:
    command = f"train --out run --resume --quiet --no-report --set training.steps={steps}"
    return Probe(f"resume to step {steps}", (command,), RESULT, files)
