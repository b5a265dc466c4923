"""How fast a run goes: what the settings, the model, the task and the device allow."""

from functools import partial

import pytest
import torch
from heed.runs.jobs import Job

from heed.data.batching import collate, collate_labelled, plan, plan_packed
from heed.data.packing import pack
from heed.models.transformer import Transformer, TransformerConfig
from heed.runs.execution_plan import plan_execution
from heed.tasks.classification import Classification
from heed.tasks.translation import RDrop, Taught, Translation
from heed.training.config import TrainingConfig
from heed.training.distributed import Sharded, SingleProcess

CPU, CUDA = SingleProcess(), SingleProcess(torch.device("cuda"))


@pytest.fixture(autouse=True)
def a_good_card(monkeypatch):
    """With all that the swift way needs."""
    monkeypatch.setattr("heed.runs.execution_plan.multiplies_bfloat16", lambda: True)
    monkeypatch.setattr("heed.runs.execution_plan.find_spec", lambda name: name)


def model(**shape):
    sizes = {"dim": 32, "heads": 2, "hidden": 32, "encoder_layers": 1, "decoder_layers": 1, "max_length": 20}
    return Transformer(TransformerConfig(vocab_size=20, **{**sizes, **shape}))


class Unasked:
    size = 0

    def run(self, model, decoding, max_source): ...

    def facts(self, model): ...

    def too_long(self, most): ...


def job(objective=None, together=collate):
    return Job(objective or Translation(0.1), Unasked(), "loss", together)


def of(workers=CPU, made=None, own=None, most=0, **settings):
    return plan_execution(TrainingConfig(**settings), made or model(), own or job(), workers, most)


def test_on_a_cpu_sentences_stand_side_by_side_in_float32():
    found = of()
    assert (found.precision, found.plan, found.together, found.accelerated) == ("float32", plan, collate, False)


def test_on_one_gpu_in_bfloat16_they_go_end_to_end_and_swiftly():
    for objective in (Translation(0.1), RDrop(0.1, 5.0), Taught((model(dim=64),))):
        found = of(CUDA, own=job(objective), precision="bfloat16", batch_tokens=25_000)
        assert found.accelerated and found.plan is plan_packed
        assert isinstance(found.together, partial) and found.together.func is pack
        assert found.together.keywords == {"slots": 1792}  # about a sixteenth


@pytest.mark.parametrize("budget", [1000, 4096, 8192, 25_000, 25_344, 25_600, 100_000])
def test_a_full_batch_is_filled_up_by_next_to_nothing_and_every_batch_ends_with_a_tile(budget):
    slots = of(CUDA, precision="bfloat16", batch_tokens=budget).together.keywords["slots"]
    full = -(-budget // slots) * slots
    assert full - budget < max(128, 0.01 * budget) and slots % 128 == 0 and slots <= max(128, budget / 8)


@pytest.mark.parametrize("world", [2, 8, 64])
def test_a_share_of_a_batch_is_filled_up_by_as_little(world):
    cards = SingleProcess(torch.device("cuda"))
    cards.world = world
    found = of(cards, precision="bfloat16", batch_tokens=25_000 * world)
    assert found.together.keywords == of(CUDA, precision="bfloat16", batch_tokens=25_000).together.keywords


@pytest.mark.parametrize(("lacks", "says"), [("find_spec", "Triton is not installed"),
                                             ("multiplies_bfloat16", "this GPU does not multiply bfloat16")])  # fmt: skip
def test_what_the_swift_way_lacks_is_told(monkeypatch, lacks, says):
    monkeypatch.setattr(f"heed.runs.execution_plan.{lacks}", lambda *name: None)
    found = of(CUDA, precision="bfloat16")
    assert not found.accelerated and found.plan is plan
    (told,) = found.says(CUDA.device)
    assert told.startswith(f"This run goes the plain way, which is slower: {says}")
    assert of(CUDA, precision="float32").says(CUDA.device) == []


def test_long_texts_whose_attention_is_dropped_go_the_plain_way():
    drops = model(attention_dropout=0.1, max_length=300)
    assert of(CUDA, drops, most=128, precision="bfloat16").accelerated
    found = of(CUDA, drops, most=129, precision="bfloat16")
    assert not found.accelerated and "texts have up to 129 tokens" in found.says(CUDA.device)[0]
    assert of(CUDA, model(max_length=300), most=300, precision="bfloat16").accelerated


@pytest.mark.parametrize("settings", [{"precision": "tf32"}, {"compile": True}, {"packed": False}])
def test_settings_that_go_another_way(settings):
    found = of(CUDA, **{"precision": "bfloat16", **settings})
    assert not found.accelerated and found.plan is plan and found.together is collate


def test_a_model_whose_heads_no_kernel_is_made_for_goes_the_plain_way():
    assert not of(CUDA, model(heads=8), precision="bfloat16").accelerated  # heads of 4
    assert of(CUDA, model(heads=8), precision="bfloat16", packed=True).plan is plan_packed


def test_a_teacher_whose_heads_no_kernel_is_made_for_is_heard_the_plain_way():
    lesson = job(Taught((model(heads=8),)))
    assert not of(CUDA, own=lesson, precision="bfloat16").accelerated
    assert of(CUDA, own=lesson, precision="bfloat16", packed=True).plan is plan_packed


def test_no_text_may_be_longer_than_a_teacher_has_places_for():
    for settings in ({}, {"packed": True}):
        assert of(own=job(Taught((model(max_length=12),))), **settings).longest == 12
        assert of(own=job(Taught((model(max_length=99),))), **settings).longest == 20


def test_weights_in_parts_go_the_plain_way():
    parts = Sharded.__new__(Sharded)
    parts.device = torch.device("cuda")
    assert not of(parts, precision="bfloat16").accelerated


def test_end_to_end_can_be_asked_for_anywhere():
    found = of(packed=True)
    assert found.plan is plan_packed and not found.accelerated and found.precision == "float32"


def test_what_cannot_go_end_to_end_says_so():
    with pytest.raises(
        ValueError, match=r"training\.packed is true, but this task or this model cannot take sentences"
    ):
        of(own=job(Classification(0.1), collate_labelled), packed=True)
    assert of(CUDA, own=job(Classification(0.1), collate_labelled), precision="bfloat16").plan is plan


@pytest.mark.parametrize("able", [False, True])
def test_what_a_cpu_cannot_multiply_is_told(monkeypatch, able):
    monkeypatch.setattr("heed.runs.execution_plan._multiplies_bfloat16", lambda: able)
    (told,) = of(precision="bfloat16").says(CPU.device) or [""]
    assert ("this CPU does not multiply" in told) is not able
    assert of(precision="auto").says(CPU.device) == []
    assert of(precision="bfloat16").says(torch.device("cuda")) == []
