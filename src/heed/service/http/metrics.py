"""Figures in the text format of Prometheus."""

import threading
from collections.abc import Callable

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64)
Number = int | float
Labels = tuple[tuple[str, str], ...]


class Counter:
    """A number that only grows, for each set of labels."""

    kind = "counter"

    def __init__(self, name: str, help: str):
        self.name, self.help, self.values, self.lock = name, help, {}, threading.Lock()

    def add(self, amount: Number = 1, labels: Labels = ()) -> None:
        with self.lock:
            self.values[labels] = self.values.get(labels, 0) + amount

    def lines(self) -> list[str]:
        with self.lock:
            return [f"{self.name}{_labels(labels)} {_number(value)}" for labels, value in self.values.items()]


class Gauge:
    """A number as it is when it is asked for."""

    kind = "gauge"

    def __init__(self, name: str, help: str, read: Callable[[], dict[Labels, Number]]):
        self.name, self.help, self.read = name, help, read

    def lines(self) -> list[str]:
        return [f"{self.name}{_labels(labels)} {_number(value)}" for labels, value in self.read().items()]


class Histogram:
    """How often a value was at most so large."""

    kind = "histogram"

    def __init__(self, name: str, help: str, edges: tuple[Number, ...]):
        self.name, self.help, self.edges, self.values, self.lock = name, help, edges, {}, threading.Lock()

    def add(self, value: Number, labels: Labels = ()) -> None:
        with self.lock:
            counts, total = self.values.setdefault(labels, ([0] * (len(self.edges) + 1), 0.0))
            counts[next((i for i, edge in enumerate(self.edges) if value <= edge), len(self.edges))] += 1
            self.values[labels] = counts, total + value

    def lines(self) -> list[str]:
        found = []
        with self.lock:
            for labels, (counts, total) in self.values.items():
                sofar = 0
                for edge, own in zip([*map(_number, self.edges), "+Inf"], counts, strict=True):
                    sofar += own
                    found.append(f"{self.name}_bucket{_labels((*labels, ('le', edge)))} {sofar}")
                found.append(f"{self.name}_sum{_labels(labels)} {_number(total)}")
                found.append(f"{self.name}_count{_labels(labels)} {sofar}")
        return found


class Metrics:
    """All figures of a service."""

    def __init__(self):
        self.requests = Counter("heed_requests_total", "Requests that were answered.")
        self.seconds = Histogram("heed_request_seconds", "Time from a request to its answer.", SECONDS)
        self.characters = Counter("heed_characters_total", "Characters that were taken in.")
        self.sentences = Counter("heed_sentences_total", "Sentences that a model was given.")
        self.tokens = Counter("heed_tokens_total", "Source subwords that a model was given.")
        self.batches = Histogram("heed_batch_sentences", "Sentences in a batch.", SIZES)
        self.work = Histogram("heed_batch_seconds", "Time for a batch.", SECONDS)
        self.gone = Counter("heed_gone_total", "Requests whose client left before the answer.")
        self.all = [self.requests, self.seconds, self.characters, self.sentences, self.tokens, self.batches, self.work, self.gone]  # fmt: skip

    def gauge(self, name: str, help: str, read: Callable[[], dict[Labels, Number]]) -> None:
        self.all.append(Gauge(name, help, read))

    def watcher(self, model: str) -> Callable:
        """What a model's worker tells of its batches."""
        labels = (("model", model),)

        def watch(key: tuple, jobs: int, tokens: int, seconds: float) -> None:
            if key[0] == "translate":
                self.sentences.add(jobs, labels)
                self.tokens.add(tokens, labels)
                self.batches.add(jobs, labels)
            self.work.add(seconds, (*labels, ("kind", key[0])))

        return watch

    def text(self) -> str:
        lines = []
        for one in self.all:
            lines += [f"# HELP {one.name} {one.help}", f"# TYPE {one.name} {one.kind}", *one.lines()]
        return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: Number) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
