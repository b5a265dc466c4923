"""Every model with every task: it is trained, or refused with a sentence."""

from itertools import product

import pytest

from heed.models import MODELS
from heed.runs.recipe import fits
from heed.tasks import TASKS
from tests.contract.contract import check_pair, check_refused

SOURCE, TARGET = "나는 책을 읽어요.", "I read books."
VALID = {"train": "valid"}  # of tasks whose files are not lines
FEW = ("--samples", "10")


def translator(source: str, text: str) -> dict[str, list[str]]:
    return {
        "translate": [text, "--engine", "torch", "--max-length", "5"],
        "summarize": ["--lines", f"{{corpus}}/valid.{source}", "--max-length", "5"],
        "evaluate": ["--source", f"{{corpus}}/valid.{source}", "--reference", "{corpus}/valid.en", "--beam", "1"],
        "score": ["--source", f"{{corpus}}/valid.{source}", "--target", "{corpus}/valid.en"],
        "look": [text, "--target", TARGET, "--out", "OUT"],
    }


def filler() -> dict[str, list[str]]:
    return {"fill": ["I [MASK] books.", "--top", "3"], "evaluate": ["--text", "{corpus}/valid.en"]}


CASES = {  # the files of each task, and what each verb of its products is given
    "translation": ({"source": "ko", "target": "en"}, translator("ko", SOURCE)),
    "denoising": ({"source": "en"}, translator("en", TARGET)),
    "gap-sentences": ({"source": "articles"}, translator("en", TARGET)),
    "classification": (
        {"source": "en", "target": "labels"},
        {
            "classify": [TARGET, "Who is it?"],
            "evaluate": ["--source", "{corpus}/valid.en", "--reference", "{corpus}/valid.labels", *FEW],
        },
    ),
    "regression": (
        {"source": "en", "target": "lengths"},
        {
            "classify": [TARGET, "Who is it?"],
            "evaluate": ["--source", "{corpus}/valid.en", "--reference", "{corpus}/valid.lengths", *FEW],
        },
    ),
    "multiple-choice": (
        {"tsv": "questions"},
        {"classify": [f"{SOURCE}\t{TARGET}\tWho is it?"], "evaluate": ["--tsv", "{corpus}/valid.questions", *FEW]},
    ),
    "tagging": (
        {"train": "conll"},
        {"tag": [TARGET, "--format", "json"], "evaluate": ["--conll", "{corpus}/valid.conll", *FEW]},
    ),
    "question-answering": (
        {"train": "squad"},
        {
            "answer": [f"Who?\t{TARGET}", "--json", "--n", "3"],
            "evaluate": ["--squad", "{corpus}/valid.squad", *FEW],
        },
    ),
    "embedding": (
        {"source": "ko", "target": "en"},
        {
            "embed": [TARGET, "--search", "{corpus}/valid.en", "--top", "2"],
            "evaluate": ["--source", "{corpus}/valid.ko", "--reference", "{corpus}/valid.en", *FEW],
        },
    ),
    "language": (
        {"source": "en"},
        {
            "generate": ["--prompt", "I", "--length", "5", "--seed", "3"],
            "evaluate": ["--text", "{corpus}/valid.en"],
            "score": ["--text", "{corpus}/valid.en"],
            "look": [TARGET, "--out", "OUT"],
        },
    ),
    "recommendation": (
        {"interactions": "log"},
        {"recommend": ["--user", "u4", "--n", "3"], "evaluate": ["--at", "5", *FEW]},
    ),
    "image-classification": (
        {"images": "images"},
        {
            "classify": ["{corpus}/valid.images/even", "--top", "2"],
            "evaluate": ["--images", "{corpus}/valid.images", *FEW],
        },
    ),
    "speech-recognition": (
        {"audio": "recordings"},
        {
            "transcribe": ["{corpus}/3.wav", "--format", "json"],
            "evaluate": ["--audio", "{corpus}/valid.recordings", *FEW],
        },
    ),
    "image-generation": (
        {"images": "images"},
        {"generate": ["--count", "2", "--out", "PNG"], "evaluate": ["--images", "{corpus}/valid.images", *FEW]},
    ),
    "speech-synthesis": (
        {"audio": "recordings"},
        {
            "speak": ["Hello.", "--out", "{corpus}/hello.wav", "--picture", "{corpus}/hello.png"],
            "evaluate": ["--audio", "{corpus}/valid.recordings", *FEW],
        },
    ),
    "masked": ({"source": "en"}, {**filler(), "classify": [f"{TARGET}\t{TARGET}", "--scores"]}),
    "replaced-tokens": ({"source": "en"}, {**filler(), "tag": [TARGET, "--format", "json"]}),
}


def sections(task: str, corpus) -> dict:
    sides, _ = CASES[task]
    data = {side: [str(corpus / f"train.{ending}")] for side, ending in sides.items()}
    if task == "recommendation":  # a log holds out its own, and has no text
        return {"data": data}
    if task == "speech-synthesis":  # it reads letters
        return {"data": data | {"valid_audio": [str(corpus / "valid.recordings")], "rate": 8000, "mels": 20}}
    data |= {VALID.get(side, f"valid_{side}"): [str(corpus / f"valid.{ending}")] for side, ending in sides.items()}
    data |= {"columns": [1, 2, 3, 4]} if "tsv" in sides else {}
    more = {"task": {"name": task, "scored": [str(corpus / "valid.scored")]}} if task == "embedding" else {}
    more = {"task": {"name": task, "pair": "order"}} if task == "masked" else more
    if task == "image-classification":
        return {
            "data": data,
            "task": {"name": task, "crop": 1, "flip": True, "randaugment": 1, "mixup": 0.5, "erasing": 0.5},
        }
    if task == "image-generation":
        return {"data": data | {"size": 4}, "task": {"name": task, "flip": True, "enlarge": 0}}
    korean = {"ko", "questions"} & {*sides.values()}  # has more characters
    return {**more, "data": data, "subwords": {"size": 700 if korean else 400}}


def pairs():
    """All pairs. Of those that fit, about half are run each time: every model, and every task, at least once. The others are long tests."""
    fitting = [pair for pair in product(MODELS, TASKS) if fits(TASKS[pair[1]], pair[0])]
    chosen = {next(pair for pair in fitting if pair[1] == task) for task in TASKS}
    chosen |= {next(pair for pair in reversed(fitting) if pair[0] == model) for model in MODELS}
    chosen |= set(fitting[::4])
    for pair in product(MODELS, TASKS):
        yield pytest.param(*pair, marks=[] if pair in chosen or pair not in fitting else pytest.mark.long)


@pytest.mark.parametrize(("model", "task"), list(pairs()))
def test_a_task_trains_each_model_that_has_what_it_needs(model, task, corpus, tmp_path, capsys):
    if not fits(TASKS[task], model):
        check_refused(model, task, sections(task, corpus))
        return
    verbs = {verb: [word.format(corpus=corpus) for word in words] for verb, words in CASES[task][1].items()}
    check_pair(model, task, sections(task, corpus), verbs, tmp_path, capsys)


def test_a_metric_has_one_label_whatever_the_task():
    """A plot and an evaluation know a metric by its name alone."""
    labels = {(metric.name, metric.label) for task in TASKS.values() for metric in task.metrics}
    assert len(labels) == len({name for name, _ in labels})


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_model_and_every_verb_is_one_of_the_command_line(task):
    from heed.cli.main import VERBS

    kind = TASKS[task]
    assert kind.name == task and any(fits(kind, model) for model in MODELS)
    assert kind.metrics and len({metric.name for metric in kind.metrics}) == len(kind.metrics)
    assert all(verb in VERBS for product in kind.products for verb in product.verbs)
