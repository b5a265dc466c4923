"""Dropout belongs to training: validation has none, whatever mode the model is in, and training leaves none of it out."""

from contextlib import closing

import pytest
import torch
from torch import nn

from heed.config import dropout_fields
from heed.models import MODELS
from heed.runs import recipe as recipes
from heed.runs.recipe import fits
from heed.runs.run import Run
from heed.tasks import TASKS
from heed.training.report import Report
from tests.contract.contract import values
from tests.contract.test_contract import sections

PAIRS = {(name, system.task) for name, system in MODELS.items()}
PAIRS |= {(next(name for name in MODELS if fits(kind, name)), task) for task, kind in TASKS.items()}
PAIRS -= {("pegasus", "gap-sentences")}  # slow, and validated as denoising is


@pytest.fixture(params=sorted(PAIRS), ids="-".join)
def at_work(request, corpus, tmp_path):
    """A run before its first step, of a model that drops nearly half of everything that its config lets it drop."""
    from rich.console import Console

    model, task = request.param
    given = values(model, task, sections(task, corpus))
    given["model"] |= dict.fromkeys(dropout_fields(MODELS[model].config), 0.4)
    given["model"] |= {name: 2 for name in ("layers", "encoder_layers", "decoder_layers") if name in given["model"]}
    if "translate" in TASKS[task].products[0].verbs:
        given["decoding"] = {"beam": 1, "max_length": 3}
    recipe = recipes.parse(given)
    prepared = recipe.task.prepare(recipe, None, lambda what, done: None)
    with closing(
        Run(recipe, tmp_path, prepared, lambda start, steps: Report(Console(quiet=True), steps, start, True))
    ) as run:
        yield run


def test_validation_drops_nothing_and_training_drops_in_every_place(at_work):
    ran, dropped = [], set()
    for name, part in at_work.model.named_modules():
        part.register_forward_hook(lambda part, *_, name=name: ran.append((name, part.training)))
        if isinstance(part, nn.Dropout) and part.p > 0:
            part.register_forward_hook(lambda *_, name=name: dropped.add(name))
    at_work.validation.run(at_work.model.train())
    assert ran and not [name for name, in_training in ran if in_training]
    dropped.clear()
    made = at_work.task.batches(at_work.recipe, at_work.prepared, at_work.plan, (0, 1), at_work.position)
    with closing(made):
        batch = next(made)[1].to(torch.device("cpu"))
    losses = []
    for training in (True, False):
        torch.manual_seed(0)
        losses.append(at_work.objective(at_work.model.train(training), batch).total.item())
        if training:
            places = {n for n, own in at_work.model.named_modules() if isinstance(own, nn.Dropout) and own.p > 0}
            assert dropped == places
    assert losses[0] != losses[1]
