"""What the guards of a search and minimum Bayes risk do: `python -m bench.guards RUN --source test.en --reference test.de`.

`scores`: BLEU, chrF and TER without and with guards, and how many translations differ. `mbr`: the same for `--rerank mbr` with each utility.
`poor`: faults in translations of text that the model does not understand. `cost`: CPU seconds for sentences without faults, in turns
without and with guards. `references`: human translations that the guards would take for faulty, of `--source` and `--reference`.
The numbers of docs/guides/search.md come from here.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import heed
from bench.machine import cpu
from heed.data.readers import lines
from heed.decoding.config import UNGUARDED, DecodingConfig, max_output_length
from heed.decoding.hypothesis import Hypothesis
from heed.evaluation.translation import score
from heed.files import write_json

PARTS = ("scores", "mbr", "poor", "cost", "references")
KINDS = {"loops": "avoid_loops", "no end": "avoid_overlong", "copies": "avoid_copies"}
Pairs = Sequence[tuple[str, str]]


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("run", help="a run or a model folder")
    top.add_argument("--source", type=Path, required=True)
    top.add_argument("--reference", type=Path, required=True)
    top.add_argument("--foreign", type=Path, help="text in a language that the model has not learned, for `poor`")
    top.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="default: all")
    top.add_argument("--beam", type=int, default=5)
    top.add_argument("--candidates", type=int, default=16, help="of `mbr` (default: 16)")
    top.add_argument("--engine", default="auto", help="auto, ctranslate2 or torch")
    top.add_argument("--texts", type=int, default=60, help="of each kind of poor text (default: 60)")
    top.add_argument("--rounds", type=int, default=6, help="of `cost` (default: 6)")
    top.add_argument("--lines", type=int, help="the first so many lines of the files (default: all)")
    top.add_argument("--device", default="auto")
    top.add_argument("--json", type=Path)
    return top


def faults(model: Any, sources: Sequence[str], targets: Sequence[Sequence[int]], beam: int) -> dict[str, set[int]]:
    """The rows with a fault of each kind; `targets` are ids, with the end token if it was reached."""
    ids = model.source.encode(list(sources))
    found = [[Hypothesis(list(own), 0.0, None)] for own in targets]
    configs = {kind: DecodingConfig(beam=beam, **{**UNGUARDED, name: True}) for kind, name in KINDS.items()}
    return {kind: set(model.guards.faulty(ids, found, config)) for kind, config in configs.items()}


def translate(model: Any, texts: Sequence[str], beam: int, **settings: Any) -> tuple[list[Any], float]:
    """Translations, not split into parts, and the CPU seconds they took."""
    began = time.process_time()
    found = model.translate(list(texts), beam=beam, too_long="cut", **settings)
    return found, time.process_time() - began


def row(found: Sequence[Any], seconds: float, references: Sequence[str]) -> dict[str, float]:
    scores = score([own.text for own in found], [references])
    return {"bleu": scores.bleu.value, "chrf": scores.chrf.value, "ter": scores.ter.value, "cpu seconds": seconds}


def scores(model: Any, pairs: Pairs, options: argparse.Namespace) -> dict[str, Any]:
    sources, references = zip(*pairs, strict=True)
    plain, first = translate(model, sources, options.beam, **UNGUARDED)
    guarded, second = translate(model, sources, options.beam)
    changed = sum(old.text != new.text for old, new in zip(plain, guarded, strict=True))
    return {"no guards": row(plain, first, references), "guards": row(guarded, second, references), "changed": changed}


def mbr(model: Any, pairs: Pairs, options: argparse.Namespace) -> dict[str, Any]:
    sources, references = zip(*pairs, strict=True)
    found = {f"beam {options.beam}": row(*translate(model, sources, options.beam), references)}
    for utility in ("bleu", "chrf"):
        settings = {"rerank": "mbr", "candidates": options.candidates, "utility": utility}
        own = translate(model, sources, options.beam, **settings)
        found[f"mbr, {utility}"] = row(*own, references)
    return found


def poor_texts(pairs: Pairs, foreign: Sequence[str], count: int) -> dict[str, list[str]]:
    """Texts of each kind that a model does not understand, made of a test set."""
    draw, sources = random.Random(1), [source for source, _ in pairs]
    names = ["".join(draw.choice("bdfgklmnprst") + draw.choice("aeiou") for _ in range(draw.randint(2, 4))) for _ in sources]  # fmt: skip
    words = [word for source in sources for word in source.split() if word.isalpha()]
    kinds: dict[str, Callable[[int], str]] = {
        "truncated words": lambda i: " ".join(word[: max(1, len(word) - draw.randint(1, 3))] for word in sources[i].split()),
        "the target language": lambda i: pairs[i][1],
        "five texts in one": lambda i: " ".join(text.rstrip(".") for text in (sources * 5)[5 * i : 5 * i + 5]),
        "repeated letters": lambda i: "".join(letter * draw.choice((1, 1, 3, 6)) for letter in sources[i]),
        "invented names": lambda i: " ".join(name.capitalize() for name in draw.sample(names, min(3, len(names)))),
        "single words": lambda i: draw.choice(words),
        "capitals": lambda i: sources[i].upper(),
    }  # fmt: skip
    found = {kind: [make(i % len(sources)) for i in range(count)] for kind, make in kinds.items()}
    return {**found, **({"another language": list(foreign[:count])} if foreign else {})}


def poor(model: Any, pairs: Pairs, options: argparse.Namespace) -> dict[str, Any]:
    foreign, found = list(lines(options.foreign)) if options.foreign else [], {}
    for kind, texts in poor_texts(pairs, foreign, options.texts).items():
        found[kind] = {}
        for name, settings in (("no guards", UNGUARDED), ("guards", {})):
            own, seconds = translate(model, texts, options.beam, **settings)
            bad = faults(model, [one.source for one in own], [one.ids for one in own], options.beam)
            found[kind][name] = {**{fault: len(rows) for fault, rows in bad.items()}, "cpu seconds": seconds}
    return found


def cost(model: Any, pairs: Pairs, options: argparse.Namespace) -> dict[str, Any]:
    """Sentences whose translations have no fault, so that there is no second search."""
    own, _ = translate(model, [source for source, _ in pairs], options.beam, **UNGUARDED)
    bad = set().union(*faults(model, [one.source for one in own], [one.ids for one in own], options.beam).values())
    texts = [one.source for number, one in enumerate(own) if number not in bad]
    seconds: dict[str, list[float]] = {"no guards": [], "guards": []}
    for _ in range(options.rounds):
        for name, settings in (("no guards", UNGUARDED), ("guards", {})):
            seconds[name].append(translate(model, texts, options.beam, **settings)[1])
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {"sentences": len(texts), "cpu seconds": medians, "rounds": seconds}


def references(model: Any, pairs: Pairs, options: argparse.Namespace) -> dict[str, Any]:
    """Of the references, how many the guards would refuse; one that is longer than the limit of its source has no end."""
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    ids, last = model.target.encode(targets), model.target.special.last
    limits = [max_output_length(model.decoding, len(own), sys.maxsize) for own in model.source.encode(sources)]
    ended = [own[:most] if len(own) >= most else [*own, last] for own, most in zip(ids, limits, strict=True)]
    bad = faults(model, sources, ended, options.beam)
    return {"references": len(pairs), **{kind: sorted(rows) for kind, rows in bad.items()}}


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    pairs = list(zip(lines(options.source), lines(options.reference), strict=True))[: options.lines]
    model = heed.load(options.run, device=options.device, engine=options.engine)
    found: dict[str, Any] = {"run": options.run, "engine": model.engine(beam=options.beam), "cpu": cpu()}
    for part in options.only:
        found[part] = {"scores": scores, "mbr": mbr, "poor": poor, "cost": cost, "references": references}[part](
            model, pairs, options
        )
        print(part)
        for name, value in found[part].items():
            print(f"  {name}: {shown(value)}", flush=True)
        if options.json:
            write_json(options.json, found)
    return 0


def shown(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name} {shown(own)}" for name, own in value.items())
    if isinstance(value, list):
        return ", ".join(map(shown, value)) or "none"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    raise SystemExit(main())
