"""Several processes do what one does. Three are started once for all tests of this file, in groups of two and three."""

from itertools import pairwise
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist

from heed.data import corpus as corpora
from heed.data.batching import Batches, DataPosition, collate
from heed.data.filters import FiltersConfig
from heed.data.readers import Line
from heed.models.bart import Bart, BartConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.tasks.sequence_loss import CrossEntropy, RDrop
from heed.training import checkpoints, torchrun
from heed.training.average import EMA
from heed.training.checkpoints import TrainingState
from heed.training.distributed import Replicated, Sharded, SingleProcess, join
from heed.training.loop import train
from heed.training.shards import gather
from heed.vocabularies.sentencepiece import SPECIAL_TOKENS
from heed.vocabularies.vocabulary import Vocabulary
from tests import forked

SIZES = {"vocab_size": 19, "dim": 16, "heads": 2, "hidden": 24, "encoder_layers": 2, "decoder_layers": 1}
KINDS = {"ddp": Replicated, "fsdp": Sharded}
DROPPING = {"dropout": 0.3, "kind": Bart, "budget": 60}
GROUPS = [("ddp", 2), ("ddp", 3), ("fsdp", 2)]


class Digits(Vocabulary):
    """A vocabulary of ten."""

    special = SPECIAL_TOKENS

    def __len__(self):
        return 19

    def clean(self, text):
        return text

    def encode(self, texts):
        return [[4 + int(letter) for letter in text] for text in texts]


def fresh(dropout=0.0, kind=Transformer):
    torch.manual_seed(0)
    model = kind({Transformer: TransformerConfig, Bart: BartConfig}[kind](**SIZES, dropout=dropout)).double()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return model


class Session:
    """Training that can be stopped, saved and resumed."""

    def __init__(self, workers, folder: Path, *, objective=CrossEntropy(0.1), seed=3, budget=16, **model):  # noqa: B008
        self.workers, self.seed, self.place, self.seen = workers, seed, DataPosition(), []
        self.model = fresh(**model)
        self.objective = workers.wrap_objective(self.model, objective)
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.0, eps=1e-3, weight_decay=0.1, fused=True)
        self.learner = TrainingState(self.model, optimizer, EMA(self.model, 0.5))
        share = workers.rank, workers.world
        self.batches = Batches(
            corpora.Corpus(folder / "corpus"), budget=budget, seed=3, share=share
        )  # few rows: fewer than workers

    def run(self, steps, after_step=()):
        def note(progress):
            self.place = progress.position
            self.learner.ema.update(self.model, progress.step)
            self.seen.append([float(part) for part in (progress.nll, progress.count, progress.gradient_norm)])

        train(
            self.model, self.batches.start(self.place), self.objective, self.learner.optimizer, lambda step: 0.01,
            steps=steps, accumulate=2, clip=1.0, seed=self.seed, workers=self.workers, after_step=[note, *after_step],
        )  # fmt: skip
        return self

    def tensors(self):
        """All tensors of a checkpoint, unsharded."""
        parts = [gather(own, self.workers.first) for own in self.learner.tensors()]
        return [{name: weight.clone() for name, weight in own.items()} for own in parts]

    def save(self, folder: Path, step: int):
        parts = self.tensors()
        self.workers.broadcast(lambda: checkpoints.write(folder, step, *parts, {"place": list(self.place)}) and None)
        return self

    def restore(self, path: Path):
        kept = checkpoints.read(path) if self.workers.first else None
        self.place = DataPosition(*self.workers.broadcast(lambda: kept.state["place"]))
        parts = (kept.model, kept.training) if kept else ({}, {})
        assert self.learner.restore(*map(self.workers.broadcast_tensors, parts), path) == []
        return self


def exercise(workers, folder: Path, name: str) -> dict:
    """All that the tests compare, from one group of workers."""
    found = {}
    whole = Session(workers, folder).run([1, 2, 3, 4])
    found["trained"] = whole.tensors(), whole.seen, whole.place
    found["resumed"] = Session(workers, folder).restore(folder / "alone" / "step-000002").run([3, 4]).tensors()
    twice = Session(workers, folder, objective=RDrop(0.1, 5.0), kind=Bart).run([1, 2])
    found["r-drop"] = twice.tensors()
    with workers.full_model(twice.model, twice.learner.ema.weights) as model:
        found["full model"] = model and {name: weight.clone() for name, weight in model.state_dict().items()}
    # with dropout: whole, and broken in the middle
    found["dropped"] = Session(workers, folder, **DROPPING).run([1, 2, 3, 4]).tensors()
    Session(workers, folder, **DROPPING).run([1, 2]).save(folder / name, 2)
    broken = Session(workers, folder, **DROPPING).restore(folder / name / "step-000002")
    found["broken"] = broken.run([3, 4]).tensors()
    found["stopped"] = workers.rank, stop(workers, folder)
    found["errors"] = errors(workers)
    return found


def stop(workers, folder: Path) -> int:
    """The step after which all stop because the last one was asked to, in step 2."""
    steps = []

    def request(progress):
        if progress.step == 2 and workers.rank == workers.world - 1:
            workers.request_stop()

    Session(workers, folder).run(
        range(1, 9), [request, lambda progress: steps.append(progress.step), lambda progress: workers.should_stop()]
    )
    return steps[-1]


def errors(workers) -> list[str]:
    def fail():
        raise ValueError("no such thing")

    def fail_everywhere():
        with workers.errors_from_first():
            fail()

    said = [workers.first_before_others(lambda: f"made by {workers.rank}")]
    lost = RuntimeError("[gloo/transport/tcp/pair.cc:1] Connection closed by peer\nmore")
    assert workers.raise_if_peer_died(RuntimeError("out of memory")) is None
    for attempt in (lambda: workers.broadcast(fail), fail_everywhere, lambda: workers.raise_if_peer_died(lost)):
        try:
            attempt()
        except (ValueError, SystemExit) as error:
            said.append(f"{type(error).__name__} {error}")
    return said


def work(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    for kind, world in GROUPS:
        if rank < world:
            name = f"{kind}-{world}"
            workers = KINDS[kind](
                torch.device("cpu"), rank, world, dist.FileStore(str(folder / f"{name}.store"), world)
            )
            torch.save(exercise(workers, folder, name), folder / f"{name}-{rank}.pt")
            workers.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path, codes = exercised(tmp_path_factory.mktemp("distributed"))
    if any(code < 0 for code in codes):  # torch's collectives for the CPU crashed once: "double free or corruption"
        path, codes = exercised(tmp_path_factory.mktemp("again"))
    assert codes == [0, 0, 0]
    return path


def exercised(path: Path) -> tuple[Path, list[int]]:
    """The folder in which three processes have exercised every kind of group, and their exit codes."""
    chance = np.random.default_rng(0)
    texts = ["".join(map(str, chance.integers(0, 10, n).tolist())) for n in chance.integers(1, 12, 60)]
    lines = [Line(*pair, f"here:{i}") for i, pair in enumerate(pairwise(texts), 1)]
    skip = np.zeros(len(lines), dtype=np.uint8)
    corpora.build(path / "corpus", lambda: lines, (Digits(), Digits()), FiltersConfig(), skip=skip)
    Session(SingleProcess(), path).run([1, 2]).save(path / "alone", 2)
    processes = [forked.context().Process(target=work, args=(rank, path), daemon=True) for rank in range(3)]
    for process in processes:
        process.start()
    running = list(processes)
    while running and not any(process.exitcode for process in processes):  # the others would wait for one that is gone
        wait([process.sentinel for process in running])
        running = [process for process in running if process.exitcode is None]
    for process in running:
        process.kill()
        process.join()
    return path, [process.exitcode for process in processes]


@pytest.fixture(params=GROUPS, ids=lambda group: f"{group[0]} on {group[1]}")
def found(request, folder) -> list[dict]:
    """The results of each process of a group."""
    kind, world = request.param
    return [torch.load(folder / f"{kind}-{world}-{rank}.pt", weights_only=False) for rank in range(world)]


def near(one, other):
    torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_weights_optimizer_and_average_are_those_of_one_process_with_the_whole_batch(found, folder):
    alone = Session(SingleProcess(), folder).run([1, 2, 3, 4])
    tensors, seen, place = found[0]["trained"]
    near(tensors, alone.tensors())
    near(seen, alone.seen)
    assert place == alone.place
    assert all(own["trained"][1:] == (seen, place) for own in found)  # all see the same


def test_a_checkpoint_of_one_process_is_resumed_by_any_number(found, folder):
    near(found[0]["resumed"], Session(SingleProcess(), folder).run([1, 2, 3, 4]).tensors())


def test_a_checkpoint_of_any_number_is_resumed_by_one(found, folder, request):
    kind, world = request.node.callspec.params["found"]
    kept = folder / f"{kind}-{world}" / "step-000002"
    again = Session(SingleProcess(), folder, **DROPPING).restore(kept)
    near(again.tensors(), [checkpoints.read(kept).model, checkpoints.read(kept).training])
    again.run([3, 4])


def test_r_drop_with_buffers_and_the_full_model_of_the_first(found, folder):
    alone = Session(SingleProcess(), folder, objective=RDrop(0.1, 5.0), kind=Bart).run([1, 2])
    near(found[0]["r-drop"], alone.tensors())
    near(found[0]["full model"], alone.learner.ema.weights)


def test_a_run_that_goes_on_has_the_bits_of_one_that_was_never_stopped(found):
    for one, other in zip(found[0]["dropped"], found[0]["broken"], strict=True):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_all_stop_after_the_same_step_when_one_is_asked_to(found):
    assert [own["stopped"] for own in found] == [(rank, 4) for rank in range(len(found))]


def test_an_error_of_all_is_reported_by_the_first_and_ends_the_others(found):
    first, second = found[0]["errors"], found[1]["errors"]
    assert first[:3] == ["made by 0", *["ValueError no such thing"] * 2]
    assert second[:3] == ["made by 1", *["SystemExit 1"] * 2]


def test_two_processes_report_a_dead_one(found):
    for rank, own in enumerate(found[:2]):
        assert own["errors"][3].startswith("ValueError another process of this run has died")
        assert (
            f"(process {rank} of {len(found)} noticed it: [gloo/transport/tcp/pair.cc:1] Connection closed by peer);"
            in own["errors"][3]
        )
    assert [own["errors"][3] for own in found[2:]] == ["SystemExit 1"] * len(found[2:])


def test_dropout_differs_from_process_to_process():
    drawn = []

    def objective(model, batch):
        drawn.append(torch.rand(1).item())
        return CrossEntropy()(model, batch)

    for rank in (0, 1, 0):
        workers, model = SingleProcess(), fresh()
        workers.rank = rank
        batches = iter([(1, collate([[5]], [[6]]))])
        train(
            model, batches, objective, torch.optim.SGD(model.parameters()), lambda step: 0.0, steps=[1], workers=workers
        )
    assert drawn[0] == drawn[2] != drawn[1]


TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "here", "MASTER_PORT": "1"}


@pytest.mark.parametrize(
    ("name", "gpu", "device"),
    [("auto", True, "cuda:1"), ("cuda", True, "cuda:1"), ("auto", False, "cpu"), ("cpu", True, "cpu")],
)
def test_each_process_has_the_gpu_of_its_local_rank(monkeypatch, name, gpu, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    alone = torchrun.local_device(name)
    for key, value in TORCHRUN.items():
        monkeypatch.setenv(key, value)
    assert alone == name
    assert torchrun.local_device(name) == (name if device == "cpu" else device)
    assert not torchrun.is_first()
    with pytest.raises(ValueError, match=r"training\.device is 'cuda:0', but torchrun gives each process its own GPU"):
        torchrun.local_device("cuda:0")


def test_a_process_that_torchrun_has_not_started_is_a_single_one(monkeypatch):
    monkeypatch.setenv("RANK", "3")  # by itself it says nothing
    assert torchrun.is_first()
    workers = join(torch.device("cpu"), "fsdp")
    assert type(workers) is SingleProcess
    assert workers.broadcast(lambda: 5) == workers.first_before_others(lambda: 5) == 5
