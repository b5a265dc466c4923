"""heed evaluate"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed evaluate runs/en-de --source test.en --reference test.de
  heed evaluate runs/en-de --source test.en --reference test.de --lowercase --against runs/other
  heed evaluate runs/ko-en --source test.ko --reference test.en --gold test.align
  heed evaluate test.hyp --reference test.de             # translations that are there already
  heed evaluate runs/news --source test.article --reference test.summary --rouge
  heed evaluate runs/en-de --source test.en --reference test.de --sentences report.html
  heed evaluate runs/wiki --text test.txt                # the perplexity of a language model

--sentences writes a table of all sentences, the worst first, as .tsv or as one .html page with the
differences marked. --against gives the p-value of a paired bootstrap test for each metric.
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device, add_engine

    parser.add_argument(
        "system", help="a run or model folder (several with commas: an ensemble), or a file of translations"
    )
    parser.add_argument("--source", metavar="FILE", help="what to translate; needed for a folder")
    parser.add_argument("--reference", nargs="+", metavar="FILE", help="one or more reference translations")
    parser.add_argument("--text", metavar="FILE", help="of a language model: a text, for its perplexity")
    parser.add_argument("--rows", type=int, default=1, help="how many parts of --text are read at once; 1 is exact")
    parser.add_argument("--against", metavar="SYSTEM", help="another folder or file to compare with")
    parser.add_argument("--sentences", type=Path, metavar="FILE", help="write a table of sentences (.tsv or .html)")
    parser.add_argument("--out", metavar="FILE", help="write the translations to a file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the scores as JSON")
    parser.add_argument("--gold", metavar="FILE", help="gold word alignments (0-0 1-2): gives the alignment error rate")
    parser.add_argument(
        "--rouge", action="store_true", help="ROUGE-1, ROUGE-2 and ROUGE-L too, against the first reference"
    )
    parser.add_argument("--lowercase", action="store_true", help="score without regard to case")
    parser.add_argument(
        "--tokenize", default="13a", help="sacreBLEU's tokenizer: 13a, zh, ja-mecab, ko-mecab, intl, char, flores200"
    )
    parser.add_argument("--samples", type=int, default=1000, help="how many samples the bootstrap draws")
    parser.add_argument("--beam", type=int, help="how many hypotheses are kept at each step; 1 is greedy")
    parser.add_argument("--length-penalty", type=float, help="alpha, the power of the penalty; the larger the longer")
    add_device(parser)
    why = "who searches: torch, so that scores are the model's own, unless said; auto is what heed translate uses"
    add_engine(parser, "torch", why)


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from heed.cli.common import read_lines, write_lines
    from heed.evaluation.sentence_scores import score_sentences
    from heed.evaluation.sentences import write
    from heed.evaluation.translation import metrics, score

    if args.text:
        from heed.cli.language import evaluate

        return evaluate(args)
    if not args.reference:
        raise ValueError("name what to compare with: --reference FILE, or for a language model --text FILE")
    references = [read_lines(path) for path in args.reference]
    sources = read_lines(args.source) if args.source else None
    for path, reference in zip(args.reference, references, strict=True):  # before anything takes its time
        if sources is not None and len(reference) != len(sources):
            raise ValueError(
                f"{args.source} has {len(sources):,} lines and {path} {len(reference):,}: line by line they go together"
            )
    metrics(args.lowercase, args.tokenize)
    translations, aligner = _translations(args.system, sources, args)
    how = {"lowercase": args.lowercase, "tokenize": args.tokenize}
    scores = score(translations, references, **how)
    console = Console()
    comparison = second = None
    if args.against:
        from heed.evaluation.comparison import compare

        second, _ = _translations(args.against, sources, args)
        comparison = compare(translations, second, references, samples=args.samples, **how)
        _show_comparison(console, args, comparison)
    else:
        _show(console, scores)
    if args.gold:
        _show_alignment(console, aligner, sources, references[0], args.gold)
    overlap = _rouge(console, translations, references[0]) if args.rouge else None
    if args.out:
        write_lines(translations, args.out)
    if args.sentences:
        table = score_sentences(translations, references, sources=sources, second=second, **how)
        write(table, scores, args.sentences, comparison=comparison, names=(args.system, args.against or "B"))
        console.print(f"Sentences: {args.sentences}")
    if args.json:
        _write_json(args.json, args, scores, comparison, overlap, aligner)
    return 0


def _translations(system: str, sources: list[str] | None, args: argparse.Namespace):
    """Those of a file, or those a model makes now."""
    from heed.cli.common import open_product, read_lines

    if Path(system).is_file():
        return read_lines(system), None
    if sources is None:
        raise ValueError(f"{system} is a model: name what it should translate with --source FILE")
    translator = open_product(args, "translate", system.split(","))
    return [translation.text for translation in translator.translate(sources, **_chosen(args))], translator


def _chosen(args: argparse.Namespace) -> dict:
    return {name: getattr(args, name) for name in ("beam", "length_penalty") if getattr(args, name) is not None}


def _show(console, scores) -> None:
    for metric in (scores.bleu, scores.chrf, scores.ter):
        console.print(
            f"{metric.name:<6}[bold]{metric.value:>7.2f}[/]  {metric.signature}", highlight=False, soft_wrap=True
        )
    console.print(f"[dim]{scores.lines:,} sentences; for TER less is better[/]", highlight=False)


def _rouge(console, summaries: list[str], references: list[str]):
    from heed.evaluation import rouge

    found = rouge.score(summaries, references)
    for name, part in (("ROUGE-1", found.one), ("ROUGE-2", found.two), ("ROUGE-L", found.longest)):
        console.print(
            f"{name} [bold]{100 * part.f1:>6.2f}[/]  precision {100 * part.precision:.2f}, recall {100 * part.recall:.2f}  "
            f"{found.signature}", highlight=False, soft_wrap=True,
        )  # fmt: skip
    return found


def _show_comparison(console, args: argparse.Namespace, comparison) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="dim", padding=(0, 2))
    for name in ("metric", args.system, args.against, "difference", "p"):
        table.add_column(name, justify="left" if name == "metric" else "right", overflow="fold")
    for one in (comparison.bleu, comparison.chrf, comparison.ter):
        table.add_row(
            one.name,
            f"{one.first:.2f} ± {one.first_width:.2f}",
            f"{one.second:.2f} ± {one.second_width:.2f}",
            f"{one.second - one.first:+.2f}",
            f"{one.p_value:.4f}",
        )
    console.print(table)
    for one in (comparison.bleu, comparison.chrf, comparison.ter):
        console.print(f"[dim]{one.name:<6}{one.signature}[/]", highlight=False, soft_wrap=True)
    console.print(
        f"[dim]{comparison.lines:,} sentences, paired bootstrap of {comparison.samples:,} samples; ± is the half-width "
        "of the 95 % interval; p below 0.05: the difference is hardly chance; for TER less is better[/]",
        highlight=False,
    )


def _show_alignment(console, translator, sources: list[str], references: list[str], path: str) -> None:
    from heed.evaluation import alignment

    if translator is None:
        raise ValueError("--gold needs a model that aligns: name a run or a model folder, not a file")
    sure, possible = alignment.read_gold(path)
    if len(sure) != len(sources):
        raise ValueError(f"{path} has {len(sure):,} lines and the source {len(sources):,}: they go in pairs")
    found = [set(links) for links in translator.align_pairs(sources, references)]
    rate = alignment.error_rate(found, sure, possible)
    console.print(
        f"alignment error rate {100 * rate:.1f} % (precision {100 * alignment.precision(found, sure, possible):.1f} %, "
        f"recall {100 * alignment.recall(found, sure):.1f} %), of the cross attention on the references",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _write_json(path: Path, args: argparse.Namespace, scores, comparison, overlap, translator) -> None:
    import dataclasses

    from heed.files import write_json

    facts = {"system": args.system, "scores": dataclasses.asdict(scores)}
    if translator is not None:
        facts["engine"] = translator.engine(**_chosen(args))
    if overlap is not None:
        facts["rouge"] = dataclasses.asdict(overlap)
    if comparison is not None:
        facts |= {"against": args.against, "comparison": dataclasses.asdict(comparison)}
    write_json(path, facts)
