"""What holds for every pair of a model and a task."""

import io
import json
import re
import shutil
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file, save_file

from heed.cli.main import main
from heed.models import MODELS
from heed.models.folder import CONFIG, WEIGHTS
from heed.models.folder_config import read_config
from heed.models.outputs import NOT_FINITE
from heed.runs import recipe as recipes
from heed.runs.models import new_config
from heed.runs.text_length import settled
from heed.runs.train import run
from heed.tasks import TASKS
from heed.training.report import Report

SMALL = {"dim": 16, "heads": 2, "hidden": 24, "encoder_layers": 1, "decoder_layers": 1, "layers": 1}
SATURATED = ("seq2seq", "rnn-lm")  # whose gates keep the outputs finite, however large the weights
TRAINING = {
    "steps": 2,
    "valid_every": 1,
    "batch_tokens": 200,
    "log_every": 1,
    "threads": 1,
    "device": "cpu",
    "samples": 1,
    "valid_engine": "torch",  # which a run on a CPU chooses
}


def values(model: str, task: str, sections: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """A recipe of two steps with a small model; `sections` say what the task is trained on."""
    known = {field.name for field in fields(MODELS[model].config)}
    small = {name: value for name, value in SMALL.items() if name in known}
    return {"model": {"name": model, **small}, "task": {"name": task}, "training": TRAINING, **sections}


def check_refused(model: str, task: str, sections: dict[str, dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match=rf"^task\.name is '{task}', (which {model} cannot learn: set|but a )"):
        recipes.parse(values(model, task, sections))


def check_pair(
    model: str, task: str, sections: dict[str, dict[str, Any]], verbs: dict[str, list[str]], tmp: Path, capsys
) -> None:
    """It trains, saves, loads, resumes to the bit, and answers its verbs."""
    recipe = recipes.parse(values(model, task, sections))
    whole, resumed = tmp / "whole", tmp / "resumed"
    said = io.StringIO()
    assert train(recipe, whole, console=Console(file=said, width=80)).how == "finished"
    check_said(said.getvalue(), model, task)
    resume(recipe, whole, resumed)
    check_recipe(settled(recipe, None, tmp, resume=False), resumed)
    check_same(whole, resumed)
    check_log(task, whole)
    product = TASKS[task].products[0]
    facts = read_config(whole / "model")
    assert facts["model"]["name"] == model and facts["task"]["name"] == task and facts["processors"]
    assert set(verbs) == {verb for product in TASKS[task].products for verb in product.verbs}
    for verb, words in verbs.items():
        answers = [
            answer(verb, folder, words, tmp / f"{folder.name}-{verb}.json", capsys) for folder in (whole, resumed)
        ]
        assert answers[0] == answers[1]
    if model not in SATURATED:
        check_overflow(whole, verbs, tmp, capsys)
    other = next(verb for verb in ("classify", "generate", "translate") if verb not in verbs)
    assert main([other, str(whole)]) == 1
    assert f"is {product.noun}: it cannot {other}; use heed {product.verbs[0]}" in capsys.readouterr().err


def check_overflow(folder: Path, verbs: dict[str, list[str]], tmp: Path, capsys) -> None:
    """Weights that are finite, and far too large: no verb gives a result of outputs that are no numbers."""
    model = shutil.copytree(folder / "model", tmp / "overflow")
    config, weights = json.loads((model / CONFIG).read_text("utf-8")), load_file(model / WEIGHTS)
    del config["sha256"]  # as in a folder of another program, which cannot be verified
    (model / CONFIG).write_text(json.dumps(config), "utf-8")
    huge = {name: own * (1e25 / own.abs().max().clamp(min=1e-9)) for name, own in weights.items()}
    save_file(huge, model / WEIGHTS)
    for verb in verbs.keys() - {"look"}:
        words = [str(tmp / "out.png") if word in ("OUT", "PNG") else word for word in verbs[verb]]
        code, says = main([verb, str(model), *words]), " ".join(capsys.readouterr().err.split())
        assert code == 1 and NOT_FINITE in says, verb


def train(recipe: recipes.Recipe, folder: Path, resume: bool = False, console: Console | None = None):
    shown = console or Console(quiet=True)
    return run(recipe, folder, resume=resume, report=lambda start, steps: Report(shown, steps, start, console is None))


def check_said(text: str, model: str, task: str) -> None:
    """What will be trained, a line for each validation, and the best of them; no control characters."""
    lines = text.splitlines()
    rows = dict(line.split("  ", 1) for line in lines[:7])
    assert list(rows) == ["Task", "Model", "Data", "Vocabulary", "Device", "Steps", "Folder"]
    assert rows["Task"].strip() == task and re.match(rf" *{model}[ ,].* · [\d,]+ weights", rows["Model"])
    assert " to validate on" in rows["Data"] and "CPU, 1 thread, float32" in rows["Device"]
    assert "2 · a validation every 1" in rows["Steps"] and rows["Folder"].strip().endswith("whole")
    valid = [line for line in lines if line.startswith("valid ")]
    assert len(valid) == 2 and valid[0].endswith("← best so far")
    best = [line for line in lines if line.startswith("Best checkpoint: step ")]
    assert len(best) == 1 and f"step {1 + ('best' in valid[1])} (" in best[0]
    assert all(char.isprintable() or char == "\n" for char in text)


def resume(recipe: recipes.Recipe, whole: Path, folder: Path) -> None:
    """The second half of a run again, in a folder that has come to its first step."""
    shutil.copytree(whole, folder)
    shutil.rmtree(folder / "checkpoints" / "step-000002")
    shutil.rmtree(folder / "model")
    assert train(recipe, folder, resume=True).how == "finished"


def check_same(whole: Path, resumed: Path) -> None:
    one, other = (load_file(folder / "model" / "model.safetensors") for folder in (whole, resumed))
    assert one.keys() == other.keys() and all(torch.equal(weight, other[name]) for name, weight in one.items())
    first, last = (load_file(whole / "checkpoints" / f"step-00000{i}" / "model.safetensors") for i in (1, 2))
    assert any(not torch.equal(weight, last[name]) for name, weight in first.items())


def check_recipe(recipe: recipes.Recipe, folder: Path) -> None:
    """The recipe in the folder has what was set, and every setting of the model: it builds the same, whatever the
    preset is by then.
    """
    stated = recipes.read(folder / "recipe.toml", [])
    open_before = recipes.differences(recipe, stated)
    assert all(before is None and name.startswith(("model.", "subwords.size")) for name, before, _ in open_before)
    prepared = stated.task.prepare(stated, None, lambda what, done: None)
    built = asdict(new_config(stated.model, prepared, 10**9))
    assert built == asdict(new_config(recipe.model, prepared, len(prepared.train)))
    assert {"name": recipe.model.name, **built} == read_config(folder / "model")["model"]


def check_log(task: str, folder: Path) -> None:
    """Each metric that the task declares was measured, and nothing else is called one."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text("utf-8").splitlines()]
    valid = [line for line in lines if line["kind"] == "valid"][-1]
    metrics = [metric for metric in TASKS[task].metrics if metric.name in valid or not metric.optional]
    assert {metric.name for metric in metrics} == set(valid) - {"kind", "step", "epoch", "perplexity", "seconds"}
    assert ("perplexity" in valid) is TASKS[task].perplexity
    card = (folder / "model" / "README.md").read_text("utf-8")
    assert all(f"| {metric.label} | " in card for metric in metrics)


def answer(verb: str, folder: Path, words: list[str], out: Path, capsys) -> str:
    capsys.readouterr()
    image = out.with_suffix(".png")
    places = {"OUT": str(out), "PNG": str(image)}
    assert main([verb, str(folder), *(places.get(word, word) for word in words)]) == 0
    printed = capsys.readouterr().out
    if image.is_file():
        return printed + image.read_bytes().hex()
    assert printed or out.is_file()
    return printed.replace(str(folder), "") + (out.read_text("utf-8").replace(str(folder), "") if out.is_file() else "")
