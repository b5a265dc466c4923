"""From RNNs to the Transformer, side by side: recurrent translators with and without attention, and the Transformer.

    python -m bench.road --data multi30k --out road --parallel 5

Each system is trained by `heed train` on Multi30k, German to English, with the same subwords and as many steps. Written
are road.md (tables), road.json (numbers), curves.png, bottleneck.png, and each run in runs/. What is there already is not
trained again.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SEQ2SEQ, TRANSFORMER = ROOT / "recipes" / "seq2seq.toml", ROOT / "recipes" / "multi30k-en-de.toml"
VECTOR = ("model.attention=off", "model.bidirectional=false", "model.reverse_source=true", "model.encoder_layers=2", "model.decoder_layers=2")  # fmt: skip
LUONG = "model.order=luong"
SMALL = ("subwords.size=2000", "subwords.sampling=0", "model.dim=128", "model.hidden=256", "model.dropout=0.1")


class System(NamedTuple):
    """`bar` is the BLEU of a well-known tutorial's system of this kind, on the same test set."""

    title: str
    recipe: Path
    settings: tuple[str, ...] = ()
    bar: float | None = None
    aligned: bool = True
    usual: bool = True  # one of those that are compared unless others are named


SYSTEMS = {
    "rnn": System("simple RNN, fixed vector", SEQ2SEQ, (*VECTOR, "model.cell=rnn"), aligned=False, usual=False),
    "lstm": System("LSTM, fixed vector", SEQ2SEQ, VECTOR, 13.76, aligned=False),
    "gru": System("GRU, fixed vector", SEQ2SEQ, (*VECTOR, "model.cell=gru"), 20.61, aligned=False),
    "bahdanau": System("additive, look then step", SEQ2SEQ, (), 28.30),
    "additive": System("additive, step then look", SEQ2SEQ, (LUONG,), 28.30),
    "content": System("content, step then look", SEQ2SEQ, (LUONG, "model.attention=content")),
    "dot": System("dot, step then look", SEQ2SEQ, (LUONG, "model.attention=dot")),
    "general": System("general, step then look", SEQ2SEQ, (LUONG, "model.attention=general")),
    "scaled-dot": System("scaled dot, step then look", SEQ2SEQ, (LUONG, "model.attention=scaled-dot")),
    "fed": System("general, step then look, fed", SEQ2SEQ, (LUONG, "model.attention=general", "model.feeding=true"), usual=False),
    "transformer": System("Transformer", TRANSFORMER, (), 36.52),
    "restricted": System("Transformer, restricted encoder", TRANSFORMER, ("model.encoder=restricted",), usual=False),
    "convolution": System("Transformer, convolutional encoder", TRANSFORMER, ("model.encoder=convolution",), usual=False),
}  # fmt: skip
MORE_COLORS = ("#3f7d20", "#c9a227", "#5b8def", "#8c6d5a", "#d46fb5", "#6b7280")  # a system has a colour of its own
BOTTLENECK = ("rnn", "lstm", "gru", "bahdanau", "dot", "transformer")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench.road", description=__doc__.splitlines()[0])
    made.add_argument(
        "--data", type=Path, required=True, help="Multi30k: train, val and test_2016_flickr, .de and .en (.gz)"
    )
    made.add_argument("--out", type=Path, required=True, help="a folder for the runs, the tables and the pictures")
    made.add_argument("--only", nargs="+", choices=SYSTEMS, metavar="NAME", help=f"some of {', '.join(SYSTEMS)}")
    made.add_argument("--steps", type=int, default=4000, help="of each training (4000)")
    made.add_argument("--parallel", type=int, default=1, help="how many are trained side by side (1)")
    made.add_argument("--device", default="auto", help="auto (a GPU if there is one), cpu, cuda")
    made.add_argument(
        "--phrasebook", type=int, default=40_000, help="pairs for the alignments against gold; 0 is none (40000)"
    )
    made.add_argument("--phrasebook-steps", type=int, default=1500, help="of each training on them (1500)")
    made.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="for every training on Multi30k")
    return made


def files(data: Path) -> dict[str, list[str]]:
    """The files of Multi30k by their settings, and the test set."""
    names = {"source": "train.de", "target": "train.en", "valid_source": "val.de", "valid_target": "val.en",
             "test_source": "test_2016_flickr.de", "test_target": "test_2016_flickr.en"}  # fmt: skip
    found = {}
    for setting, name in names.items():
        path = next((own for own in (data / name, data / f"{name}.gz") if own.is_file()), None)
        if path is None:
            raise ValueError(f"{data} has no {name} and no {name}.gz: --data wants the raw text of Multi30k")
        found[setting] = [str(path.resolve())]
    return found


def commands(args: argparse.Namespace, names: Sequence[str]) -> dict[Path, list[str]]:
    """What trains each system, by the folder of its run."""
    own, found = files(args.data), {}
    for name in names:
        system = SYSTEMS[name]
        settings = [*_data(own, "de", "en"), *system.settings, f"training.steps={args.steps}", *args.set]
        found[args.out / "runs" / name] = _train(system.recipe, args.out / "runs" / name, settings, args.device)
    return found


def phrasebook_commands(args: argparse.Namespace, names: Sequence[str]) -> dict[Path, list[str]]:
    """The same on the phrasebook, for those that align words."""
    book, found = args.out / "phrasebook", {}
    own = {f"{part}{side}": [str((book / f"{file}.{language}").resolve())] for part, file in (("", "train"), ("valid_", "valid"))
           for side, language in (("source", "ko"), ("target", "en"))}  # fmt: skip
    for name in names:
        system, out = SYSTEMS[name], args.out / "aligned" / name
        if not system.aligned:
            continue
        recurrent = system.recipe == SEQ2SEQ
        recipe = SEQ2SEQ if recurrent else ROOT / "recipes" / "phrasebook.toml"
        settings = [
            *(SMALL if recurrent else ("data.phrasebook=none", "subwords.joint=true")),
            *_data(own, "ko", "en"),
            *system.settings,
        ]
        settings += ["training.batch_tokens=2048", f"training.steps={args.phrasebook_steps}"]
        found[out] = _train(recipe, out, settings, args.device)
    return found


def _data(own: dict[str, list[str]], source: str, target: str) -> list[str]:
    named = [f"data.{name}={json.dumps(own[name])}" for name in ("source", "target", "valid_source", "valid_target")]
    return [*named, f"data.source_language={source}", f"data.target_language={target}"]


def _train(recipe: Path, out: Path, settings: Sequence[str], device: str) -> list[str]:
    words = [sys.executable, "-m", "heed", "train", str(recipe), "--out", str(out), "--device", device]
    return [*words, *(word for setting in settings for word in ("--set", setting))]


def run_all(work: dict[Path, list[str]], parallel: int) -> None:
    """Train what is not trained yet, so many at a time."""
    with ThreadPoolExecutor(max(1, parallel)) as pool:
        for done in [pool.submit(run_one, folder, words) for folder, words in work.items()]:
            done.result()


def run_one(folder: Path, words: list[str]) -> None:
    took = folder / "took.json"
    if took.is_file():
        print(f"{folder.parent.name}/{folder.name}: there already", flush=True)
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    again = ["--resume"] if (folder / "recipe.toml").is_file() else []
    with (folder.parent / f"{folder.name}.txt").open("w") as said:
        done = subprocess.run([*words, *again], stdout=said, stderr=subprocess.STDOUT, cwd=ROOT)
    if done.returncode:
        raise ValueError(f"{folder.name} could not be trained: {said.name} says why")
    took.write_text(json.dumps({"seconds": time.monotonic() - began}) + "\n")
    print(f"{folder.parent.name}/{folder.name}: {time.monotonic() - began:.0f} s", flush=True)


def examine(args: argparse.Namespace, name: str, sources: list[str], references: list[str]) -> dict[str, Any]:
    """A trained system: its scores on the test set, and how its training went."""
    from heed.evaluation.translation import score
    from heed.loading import load
    from heed.training.curves import read_log

    folder = args.out / "runs" / name
    translator, log = load(folder, args.device), read_log(folder)
    said = [t.text for t in translator.translate(sources, batch_tokens=16_384)]
    greedy = [t.text for t in translator.translate(sources, batch_tokens=16_384, beam=1)]
    scores, lower = score(said, [references]), score(said, [references], lowercase=True)
    steps = [line for line in log if line["kind"] == "step"]
    return {
        "name": name,
        "title": SYSTEMS[name].title,
        "bar": SYSTEMS[name].bar,
        "bleu": scores.bleu.value,
        "bleu_lowercase": lower.bleu.value,
        "bleu_greedy": score(greedy, [references]).bleu.value,
        "chrf": scores.chrf.value,
        "signatures": [scores.bleu.signature, lower.bleu.signature, scores.chrf.signature],
        "weights": sum(weight.numel() for weight in translator.model.parameters()),
        "seconds": json.loads((folder / "took.json").read_text())["seconds"],
        "tokens_per_second": sum(line["tokens_per_second"] for line in steps) / len(steps),
        "curve": [[line["step"], line["bleu"]] for line in log if line["kind"] == "valid"],
        "said": said,
    }


def align(args: argparse.Namespace, name: str) -> dict[str, float]:
    """Of a system trained on the phrasebook, the alignment error rate and BLEU on its test set."""
    from heed.cli.common import read_lines
    from heed.evaluation import alignment
    from heed.evaluation.translation import score
    from heed.loading import load

    book = args.out / "phrasebook"
    sources, references = (read_lines(str(book / f"test.{language}")) for language in ("ko", "en"))
    sure, possible = alignment.read_gold(book / "test.align")
    translator = load(args.out / "aligned" / name, args.device)
    found = [set(links) for links in translator.align_pairs(sources, references)]
    said = [t.text for t in translator.translate(sources)]
    rate = alignment.error_rate(found, sure, possible)
    return {"aer": 100 * rate, "precision": 100 * alignment.precision(found, sure, possible),
            "recall": 100 * alignment.recall(found, sure), "phrasebook_bleu": score(said, [references]).bleu.value}  # fmt: skip


def curves(found: Sequence[dict[str, Any]], path: Path) -> None:
    """BLEU on the validation set as training goes on."""
    from heed.lab import charts

    paper = charts.new_figure("From RNNs to the Transformer", "BLEU on the validation set (greedy) by the steps of training.", height=6.4)  # fmt: skip
    panel = paper.subplots()
    charts.style_axes(panel, "Multi30k, German to English", "steps", "BLEU")
    colors = (*charts.SERIES, *MORE_COLORS)
    for number, own in enumerate(found):
        steps, values = zip(*own["curve"], strict=True)
        charts.line(panel, steps, values, colors[number], "-", marker="o")
    charts.label_line_ends(panel, [own["title"] for own in found], gap=0.045)
    charts.save(paper, path)


def table(found: Sequence[dict[str, Any]]) -> str:
    """The systems, a row each."""
    head = [
        "system",
        "BLEU",
        "lower-cased",
        "greedy",
        "bar",
        "chrF2",
        "weights",
        "minutes",
        "tokens/s",
        "alignment error",
    ]
    rows = [
        [own["title"], f"**{own['bleu']:.2f}**", f"{own['bleu_lowercase']:.2f}", f"{own['bleu_greedy']:.2f}",
         "" if own["bar"] is None else f"{own['bar']:.2f}", f"{own['chrf']:.2f}", f"{own['weights'] / 1e6:.1f} M",
         f"{own['seconds'] / 60:.1f}", f"{own['tokens_per_second']:,.0f}", f"{own['aer']:.1f} %" if "aer" in own else ""]
        for own in found
    ]  # fmt: skip
    return markdown(head, rows)


def alignments(found: Sequence[dict[str, Any]]) -> str:
    """Word alignments read off the attention, against the phrasebook's own."""
    head = ["system", "alignment error", "precision", "recall", "BLEU"]
    names = ("aer", "precision", "recall", "phrasebook_bleu")
    rows = [[own["title"], *(f"{own[name]:.1f}" for name in names)] for own in found if "aer" in own]
    return (
        f"Word alignments on the phrasebook, Korean to English, in per cent\n\n{markdown(head, rows)}" if rows else ""
    )


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write(args: argparse.Namespace, found: list[dict[str, Any]], sources: list[str], references: list[str]) -> None:
    """Tables, numbers and pictures."""
    from heed.lab import charts
    from heed.lab.experiments import bottleneck

    systems = {own["title"]: own["said"] for own in found if own["name"] in BOTTLENECK}
    parts = [f"# From RNNs to the Transformer: Multi30k, German to English, {args.steps:,} steps each\n", table(found)]
    if systems:
        lengths = bottleneck.measure(systems, sources, references)
        charts.save(bottleneck.figure(lengths), args.out / "bottleneck.png")
        parts += [f"{own.title}\n\n{markdown(own.columns, own.rows)}" for own in bottleneck.tables(lengths)]
        parts.append(bottleneck.summary(lengths) + "\n")
    parts += [alignments(found)] if any("aer" in own for own in found) else []
    parts.append("Signatures: " + ", ".join(f"`{one}`" for one in found[0]["signatures"]) + "\n")
    curves(found, args.out / "curves.png")
    (args.out / "road.md").write_text("\n".join(parts), "utf-8")
    facts = [{key: value for key, value in own.items() if key != "said"} for own in found]
    (args.out / "road.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", "utf-8")
    for own in found:
        (args.out / "runs" / f"{own['name']}.hyp").write_text("".join(f"{text}\n" for text in own["said"]), "utf-8")


def main(words: Sequence[str] | None = None) -> int:
    from heed.cli.common import read_lines

    args = parser().parse_args(words)
    names = args.only or [name for name, system in SYSTEMS.items() if system.usual]
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    work = commands(args, names)
    if args.phrasebook:
        if not (args.out / "phrasebook" / "test.align").is_file():
            book = ["phrasebook", "--out", str(args.out / "phrasebook"), "--train", str(args.phrasebook)]
            subprocess.run([sys.executable, "-m", "heed", *book], check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
        work |= phrasebook_commands(args, names)
    run_all(work, args.parallel)
    own = files(args.data)
    sources, references = read_lines(own["test_source"][0]), read_lines(own["test_target"][0])
    found = []
    for name in names:
        found.append(examine(args, name, sources, references))
        if args.phrasebook and SYSTEMS[name].aligned:
            found[-1] |= align(args, name)
    write(args, found, sources, references)
    print((args.out / "road.md").read_text("utf-8"))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ValueError as error:
        sys.exit(f"road: {error}")
