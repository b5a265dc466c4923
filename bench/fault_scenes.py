"""The scenes of `make check-faults`: what is made, which of its files are damaged, and what is done next with them."""

from collections.abc import Sequence
from pathlib import Path

from bench import fault_families
from bench.fault_scene import (
    CACHE,
    CHECKPOINTS,
    FILES,
    MODEL,
    RESULT,
    RUN,
    SHAPE,
    SMALL,
    Probe,
    Scene,
    resumed,
    sets,
    train,
)
from heed.data.synthetic import phrasebook

TRANSLATOR = "training of a translator"
LABELS = {True: "question", False: "statement"}
PAIRS = {"decoding.max_length": 8, "filters.max_length": 40, "subwords.size": 700}
TRANSFORMER = {**SMALL, **PAIRS, **SHAPE, "model.encoder_layers": 1, "model.decoder_layers": 1}
QUICK = "translate run --device cpu --allow-loops --allow-overlong --allow-copies --scores --input data/mono.ko"  # its second run needs no torch
TEST = "--source data/test.ko --reference data/test.en"
AVERAGED = {"training.final": "average-best", "training.average": 2}


def _translation() -> Scene:
    again = {**SMALL, "filters.max_length": 40, "decoding.max_length": 8, "training.steps": 2}
    probes = (
        resumed(5),
        resumed(4, CHECKPOINTS + MODEL),
        Probe("translate", ("translate run --input data/test.ko",), (), (*MODEL, *CACHE, "run/recipe.toml")),
        Probe("translate in torch", ("translate run --engine torch --input data/test.ko",), (), MODEL),
        Probe("translate without torch", (QUICK,), (), ("run/model/*.spm",), before=(QUICK,)),
        Probe("evaluate", (f"evaluate run {TEST}",), (), (*MODEL, "run/*")),
        Probe("average", ("average run --out mean",), ("mean/model.safetensors", "mean/config.json"), (*CHECKPOINTS, *MODEL)),
        Probe("train --from", (train(again, FILES + " --from run", run="new"),), ("new/model/model.safetensors",), MODEL),
        # not log.jsonl, from which the page has its curves: it is a record, and no result comes from it
        Probe("report", ("report run --out page.html",), ("page.html",), (*MODEL, "run/*.toml", "run/*.json", "run/*.safetensors")),
    )  # fmt: skip
    made = {**TRANSFORMER, **AVERAGED}
    return Scene(
        "translation", (train(made), "translate run --input data/test.ko"), probes, (train(made, seed=2), "translate run --input data/test.ko")
    )  # fmt: skip


def _phrasebook() -> Scene:
    made = {**TRANSFORMER, "data.phrasebook": 120}
    return Scene("phrasebook", (train(made, ""),), (resumed(5, CACHE),), (train(made | {"data.phrasebook": 130}, ""),))


def _moving_average() -> Scene:
    made = {**TRANSFORMER, "training.final": "best-ema", "training.ema": 0.9}
    return Scene("moving average", (train(made),), (resumed(5), resumed(4, MODEL)), (train(made, seed=2),))


def _cooldown() -> Scene:
    made = {**TRANSFORMER, "training.cooldown": 0.5, "training.steps": 6, "training.keep": 4}
    return Scene("cool-down", (train(made),), (resumed(7, (*CHECKPOINTS, "run/*")),), (train(made, seed=2),))


def _fine_tuned() -> Scene:
    base = train(TRANSFORMER, run="base")
    settings = {**SMALL, "filters.max_length": 40, "decoding.max_length": 8}
    probes = (resumed(5, (*RUN, "base/**/*")),)
    files = FILES + " --from base"
    return Scene("fine-tuning", (base, train(settings, files)), probes, (base, train(settings, files, 2)))


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
        resumed(5),
        Probe("generate", ("generate run --prompt I --length 8 --seed 3",), (), MODEL),
        Probe("evaluate", ("evaluate run --text data/test.en",), (), (*MODEL, "run/*")),
    )  # fmt: skip
    return Scene("language model", (train(made, text),), probes, (train(made, text, 2),))


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
    probes = (resumed(5), Probe("score", ("score run --text data/test.en",), (), MODEL))
    return Scene("recurrent language model", (train(made, text),), probes, (train(made, text, 2),))


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
        resumed(5),
        Probe("classify", ("classify run --input data/test.en",), (), (*MODEL, *CACHE)),
        Probe("evaluate", ("evaluate run --source data/test.en --reference data/test.label",), (), (*MODEL, "run/*")),
        Probe("search", ("embed run --search data/train.en --top 3 dog",), (), ("cache/embeddings-*", *MODEL)),
    )  # fmt: skip
    search = "embed run --search data/train.en --top 3 dog"
    return Scene("text classifier", (train(made, text), search), probes, (train(made, text, 2), search))


STUDENT = {**SMALL, **SHAPE, "model.encoder_layers": 1, "model.decoder_layers": 1, "filters.max_length": 40, "decoding.max_length": 8, "distill.beam": 2}  # fmt: skip


def _distill(name: str, kill: str, soft: bool = False) -> Scene:
    """A teacher that is stopped while it translates, or a student in training."""
    files = "--source data/train.ko --valid-source data/valid.ko --valid-target data/valid.en"
    settings = STUDENT | ({"distill.soft": 0.5} if soft else {})
    made = train(TRANSFORMER, run="teacher"), f"distill teacher {files} --out run --quiet --no-report {sets(settings)}"
    others = train(TRANSFORMER, run="teacher", seed=2), made[1]
    steps = "" if kill else " --set training.steps=5"
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
    made = train(TRANSFORMER), command
    return Scene(
        "back-translation",
        made,
        (Probe("continue", (command,), ("pairs.tsv",), files),),
        (train(TRANSFORMER, seed=2), command),
        kill="pairs.tsv.part",
    )


def scenes() -> list[Scene]:
    return [
        _translation(), _phrasebook(), _moving_average(), _cooldown(), _fine_tuned(), _language(), _recurrent(), _classifier(),
        _distill("teacher at work", "target.txt"), _distill("student", "", soft=True), _backtranslation(),
        *fault_families.scenes(),
    ]  # fmt: skip


def trainings() -> dict[str, tuple[str, Sequence[str]]]:
    """What is stopped at every write, with the files to compare at the end."""
    steps = {**TRANSFORMER, **AVERAGED, "training.cooldown": 0.5, "subwords.kind": "words"}
    del steps["subwords.size"]
    return {
        TRANSLATOR: (train(steps), RESULT),
        **fault_families.trainings(),
    }


def write_data(folder: Path) -> None:
    """What all scenes learn from."""
    folder.mkdir(parents=True)
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
    fault_families.write_data(folder)
