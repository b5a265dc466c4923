"""Metrics in the text format of Prometheus."""

import threading
from collections.abc import Callable

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
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
    """A number that is read when the metrics are."""

    kind = "gauge"

    def __init__(self, name: str, help: str, read: Callable[[], dict[Labels, Number]]):
        self.name, self.help, self.read = name, help, read

    def lines(self) -> list[str]:
        return [f"{self.name}{_labels(labels)} {_number(value)}" for labels, value in self.read().items()]


class Histogram:
    """How many values were at most as large as each edge."""

    kind = "histogram"

    def __init__(self, name: str, help: str, edges: tuple[Number, ...]):
        self.name, self.help, self.edges, self.values, self.lock = name, help, edges, {}, threading.Lock()

    def add(self, value: Number, labels: Labels = ()) -> None:
        with self.lock:
            counts, total = self.values.setdefault(labels, ([0] * (len(self.edges) + 1), 0.0))
            counts[next((i for i, edge in enumerate(self.edges) if value <= edge), len(self.edges))] += 1
            self.values[labels] = counts, total + value

    def lines(self) -> list[str]:
        lines = []
        with self.lock:
            for labels, (counts, total) in self.values.items():
                cumulative = 0
                for edge, count in zip([*map(_number, self.edges), "+Inf"], counts, strict=True):
                    cumulative += count
                    lines.append(f"{self.name}_bucket{_labels((*labels, ('le', edge)))} {cumulative}")
                lines.append(f"{self.name}_sum{_labels(labels)} {_number(total)}")
                lines.append(f"{self.name}_count{_labels(labels)} {cumulative}")
        return lines


class Metrics:
    """All metrics of a service."""

    def __init__(self):
        self.requests = Counter("heed_requests_total", "Requests that were answered.")
        self.seconds = Histogram("heed_request_seconds", "Time from a request to its answer.", SECONDS)
        self.characters = Counter("heed_characters_total", "Characters that were taken in.")
        self.sentences = Counter("heed_sentences_total", "Sentences that a model was given.")
        self.tokens = Counter("heed_tokens_total", "Source subwords that a model was given.")
        self.generated = Counter("heed_generated_tokens_total", "Tokens that a language model wrote.")
        self.batch_sentences = Histogram("heed_batch_sentences", "Sentences in a batch.", BATCH_SIZES)
        self.batch_seconds = Histogram("heed_batch_seconds", "Time for a batch.", SECONDS)
        self.disconnects = Counter("heed_gone_total", "Requests whose client left before the answer.")
        self.all: list[Counter | Gauge | Histogram] = [*vars(self).values()]

    def gauge(self, name: str, help: str, read: Callable[[], dict[Labels, Number]]) -> None:
        self.all.append(Gauge(name, help, read))

    def batch_observer(self, model: str) -> Callable[[tuple, int, int, float], None]:
        """What a model's worker calls after each batch."""
        labels = (("model", model),)

        def observe(key: tuple, jobs: int, tokens: int, seconds: float) -> None:
            if key[0] in ("translate", "terms"):
                self.sentences.add(jobs, labels)
                self.tokens.add(tokens, labels)
                self.batch_sentences.add(jobs, labels)
            self.batch_seconds.add(seconds, (*labels, ("kind", key[0])))

        return observe

    def text(self) -> str:
        lines = []
        for metric in self.all:
            lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}", *metric.lines()]
        return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: Number) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
