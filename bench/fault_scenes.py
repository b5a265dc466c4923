"""The scenes of `make check-faults`: what is made, which of its files are damaged, and what is done next with them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from heed.data.synthetic import phrasebook

LABELS = {True: "question", False: "statement"}
SMALL = {
    "training.threads": 1, "training.auto": "false", "training.steps": 4, "training.valid_every": 2, "training.log_every": 1,
    "training.batch_tokens": 300, "training.valid_tokens": 4000, "training.samples": 1, "training.warmup": 2,
}  # fmt: skip
PAIRS = {"decoding.max_length": 8, "filters.max_length": 40, "subwords.size": 600}
SHAPE = {"model.dim": 16, "model.heads": 2, "model.hidden": 32, "model.dropout": 0.1}
TRANSFORMER = {**SMALL, **PAIRS, **SHAPE, "model.encoder_layers": 1, "model.decoder_layers": 1}
FILES = "--source data/train.ko --target data/train.en --valid-source data/valid.ko --valid-target data/valid.en"
IMAGES = {
    **SMALL,
    "data.images": "data/images",
    "data.valid_images": "data/seen",
    "training.ema": 0.9,
    "training.final": "ema",
}
VIT = {
    **IMAGES,
    **SHAPE,
    "task.flip": "true",
    "model.layers": 1,
    "model.patch": 4,
}
DRAWING = {
    **IMAGES,
    **SHAPE,
    "task.by_class": "true",
    "model.layers": 1,
}
TEST = "--source data/test.ko --reference data/test.en"


@dataclass(frozen=True)
class Probe:
    """The next commands, what they leave, and the files whose damage they may meet."""

    name: str
    commands: tuple[str, ...]
    results: tuple[str, ...] = ()
    files: tuple[str, ...] = ("run/**/*",)


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
AVERAGED = {"training.final": "average-best", "training.average": 2}


def _train(settings: dict, files: str = FILES, seed: int = 1, run: str = "run") -> str:
    return f"train {files} --out {run} --quiet --no-report {sets({**settings, 'training.seed': seed})}"


def _resumed(steps: int, files: tuple[str, ...] = (*RUN, *CACHE)) -> Probe:
    command = f"train --out run --resume --quiet --no-report --set training.steps={steps}"
    return Probe(f"resume to step {steps}", (command,), RESULT, files)


def _translation() -> Scene:
    again = {**SMALL, "filters.max_length": 40, "decoding.max_length": 8, "training.steps": 2}
    probes = (
        _resumed(6),
        _resumed(4, CHECKPOINTS + MODEL),
        Probe("translate", ("translate run --input data/test.ko",), (), (*MODEL, *CACHE, "run/recipe.toml")),
        Probe("translate in torch", ("translate run --engine torch --input data/test.ko",), (), MODEL),
        Probe("evaluate", (f"evaluate run {TEST}",), (), (*MODEL, "run/*")),
        Probe("average", ("average run --out mean",), ("mean/model.safetensors", "mean/config.json"), (*CHECKPOINTS, *MODEL)),
        Probe("train --from", (_train(again, FILES + " --from run", run="new"),), ("new/model/model.safetensors",), MODEL),
        # not log.jsonl, from which the page has its curves: it is a record, and no result comes from it
        Probe("report", ("report run --out page.html",), ("page.html",), (*MODEL, "run/*.toml", "run/*.json", "run/*.safetensors")),
    )  # fmt: skip
    made = {**TRANSFORMER, **AVERAGED}
    return Scene(
        "translation", (_train(made), "translate run --input data/test.ko"), probes, (_train(made, seed=2), "translate run --input data/test.ko")
    )  # fmt: skip


def _phrasebook() -> Scene:
    made = {**TRANSFORMER, "data.phrasebook": 120}
    return Scene(
        "phrasebook", (_train(made, ""),), (_resumed(6, CACHE),), (_train(made | {"data.phrasebook": 130}, ""),)
    )


def _moving_average() -> Scene:
    made = {**TRANSFORMER, "training.final": "best-ema", "training.ema": 0.9, "subwords.sampling": 0.1}
    return Scene("moving average", (_train(made),), (_resumed(6), _resumed(4, MODEL)), (_train(made, seed=2),))


def _cooldown() -> Scene:
    made = {**TRANSFORMER, "training.cooldown": 0.5, "training.steps": 6, "training.keep": 4}
    return Scene("cool-down", (_train(made),), (_resumed(10, (*CHECKPOINTS, "run/*")),), (_train(made, seed=2),))


def _fine_tuned() -> Scene:
    base = _train(TRANSFORMER, run="base")
    settings = {**SMALL, "filters.max_length": 40, "decoding.max_length": 8}
    probes = (_resumed(6, (*RUN, "base/**/*")),)
    files = FILES + " --from base"
    return Scene("fine-tuning", (base, _train(settings, files)), probes, (base, _train(settings, files, 2)))


def _language() -> Scene:
    made = {
        **SMALL,
        **SHAPE,
        "model.name": "gpt2",
        "model.layers": 1,
        "model.max_length": 24,
        "subwords.size": 300,
        "task.window": 16,
    }
    text = "--source data/train.en --valid-source data/valid.en"
    probes = (
        _resumed(6),
        Probe("generate", ("generate run --prompt I --length 8 --seed 3",), (), MODEL),
        Probe("evaluate", ("evaluate run --text data/test.en",), (), (*MODEL, "run/*")),
    )  # fmt: skip
    return Scene("language model", (_train(made, text),), probes, (_train(made, text, 2),))


def _recurrent() -> Scene:
    made = {
        **SMALL,
        "model.name": "rnn-lm",
        "model.dim": 8,
        "model.hidden": 8,
        "model.layers": 1,
        "subwords.kind": "words",
        "task.window": 8,
    }
    text = "--source data/train.en --valid-source data/valid.en"
    probes = (_resumed(6), Probe("score", ("score run --text data/test.en",), (), MODEL))
    return Scene("recurrent language model", (_train(made, text),), probes, (_train(made, text, 2),))


def _classifier() -> Scene:
    made = {
        **SMALL,
        **SHAPE,
        "model.name": "bert",
        "model.layers": 1,
        "subwords.size": 300,
        "task.name": "classification",
        "filters.max_length": 40,
    }
    text = (
        "--source data/train.en --target data/train.label --valid-source data/valid.en --valid-target data/valid.label"
    )
    probes = (
        _resumed(6),
        Probe("classify", ("classify run --input data/test.en",), (), (*MODEL, *CACHE)),
        Probe("evaluate", ("evaluate run --source data/test.en --reference data/test.label",), (), (*MODEL, "run/*")),
        Probe("search", ("embed run --search data/train.en --top 3 dog",), (), ("cache/embeddings-*", *MODEL)),
    )  # fmt: skip
    search = "embed run --search data/train.en --top 3 dog"
    return Scene("classifier", (_train(made, text), search), probes, (_train(made, text, 2), search))


STUDENT = {**SMALL, **SHAPE, "model.encoder_layers": 1, "model.decoder_layers": 1, "filters.max_length": 40, "decoding.max_length": 8, "distill.beam": 2}  # fmt: skip


def _distill(name: str, kill: str, soft: bool = False) -> Scene:
    """A teacher that is stopped while it translates, or a student in training."""
    files = "--source data/train.ko --valid-source data/valid.ko --valid-target data/valid.en"
    settings = STUDENT | ({"distill.soft": 0.5} if soft else {})
    made = _train(TRANSFORMER, run="teacher"), f"distill teacher {files} --out run --quiet --no-report {sets(settings)}"
    others = _train(TRANSFORMER, run="teacher", seed=2), made[1]
    steps = "" if kill else " --set training.steps=6"
    probe = Probe(
        f"resume{steps}",
        (f"distill --out run --resume --quiet --no-report{steps}",),
        RESULT,
        ("run/*", "run/distilled/*"),
    )
    return Scene(name, made, (probe,), others, kill)


def _backtranslation() -> Scene:
    command = "backtranslate run data/mono.ko --out pairs.tsv --beam 2"
    files = ("pairs.tsv.part*",)
    made = _train(TRANSFORMER), command
    return Scene(
        "back-translation",
        made,
        (Probe("continue", (command,), ("pairs.tsv",), files),),
        (_train(TRANSFORMER, seed=2), command),
        kill="pairs.tsv.part",
    )


def _image_classifier() -> Scene:
    probes = (
        _resumed(6),
        Probe("classify", ("classify run data/seen",), (), MODEL),
        Probe("embed", ("embed run data/seen --out vectors.npy",), ("vectors.npy",), MODEL),
        Probe("evaluate", ("evaluate run --images data/seen",), (), (*MODEL, *CACHE)),
    )  # fmt: skip
    return Scene("image classifier", (_train(VIT, "data/vit.toml"),), probes, (_train(VIT, "data/vit.toml", 2),))


def _image_generator() -> Scene:
    probes = (
        _resumed(6),
        Probe("generate", ("generate run --class dots --count 2 --seed 3 --out drawn.png",), ("drawn.png",), MODEL),
        Probe("evaluate", ("evaluate run --images data/seen",), (), MODEL),
    )  # fmt: skip
    return Scene(
        "image generator", (_train(DRAWING, "data/drawing.toml"),), probes, (_train(DRAWING, "data/drawing.toml", 2),)
    )


def scenes() -> list[Scene]:
    return [
        _translation(), _phrasebook(), _moving_average(), _cooldown(), _fine_tuned(), _language(), _recurrent(), _classifier(),
        _distill("teacher at work", "target.txt"), _distill("student", "", soft=True), _backtranslation(),
        _image_classifier(), _image_generator(),
    ]  # fmt: skip


def trainings() -> dict[str, tuple[str, Sequence[str]]]:
    """What is stopped at every write, with the files to compare at the end."""
    steps = {**TRANSFORMER, **AVERAGED, "training.cooldown": 0.5, "subwords.kind": "words"}
    del steps["subwords.size"]
    return {
        "training": (_train(steps), RESULT),
        "image training": (_train(VIT, "data/vit.toml"), RESULT),
        "drawing training": (_train(DRAWING, "data/drawing.toml"), RESULT),
    }


def write_data(folder: Path) -> None:
    """The texts and images that all scenes learn from."""
    folder.mkdir(parents=True)
    for name, task, model in (
        ("vit", "image-classification", "vit"),
        ("drawing", "image-generation", "image-transformer"),
    ):
        recipe = f'[task]\nname = "{task}"\n\n[model]\nname = "{model}"\n'
        (folder / f"{name}.toml").write_text(recipe, "utf-8", newline="\n")
    _write_images(folder / "images", 12)
    _write_images(folder / "seen", 3)
    for split, count in (("train", 100), ("valid", 6), ("test", 5)):
        pairs = list(phrasebook.pairs(split, count))
        for ending, lines in {
            "ko": [pair.source for pair in pairs],
            "en": [pair.target for pair in pairs],
            "label": [LABELS[pair.target.endswith("?")] for pair in pairs],
        }.items():
            (folder / f"{split}.{ending}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    lines = [pair.source for pair in phrasebook.pairs("test", 45)]
    (folder / "mono.ko").write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _write_images(folder: Path, count: int) -> None:
    """Small images of two classes: dots, and lines."""
    random = np.random.default_rng(count)
    for name in ("dots", "lines"):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = random.integers(0, 100, (8, 8, 3), dtype=np.uint8)
            row, column = random.integers(0, 8, 2)
            pixels[row, column if name == "dots" else slice(None)] = 255
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
