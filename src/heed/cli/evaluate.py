"""heed evaluate"""

import argparse
from dataclasses import asdict
from pathlib import Path

EXAMPLES = """\
examples:
  heed evaluate runs/en-de --source test.en --reference test.de
  heed evaluate runs/en-de --source test.en --reference test.de --lowercase --against runs/other
  heed evaluate runs/ko-en --source test.ko --reference test.en --gold test.align
  heed evaluate runs/many --to de --source test.en --reference test.de    # one direction of a multilingual model (docs/guides/data.md)
  heed evaluate runs/en-de --source test.en --reference test.de --rerank mbr    # docs/guides/search.md
  heed evaluate test.hyp --reference test.de             # existing translations in a file
  heed evaluate runs/g2p --source g2p/test.letters --reference g2p/test*.phonemes --phonemes    # pronunciation
  heed evaluate runs/news --source test.article --reference test.summary --rouge
  heed evaluate runs/en-de --source test.en --reference test.de --sentences report.html
  heed evaluate runs/wiki --text test.txt                # the perplexity of a language model
  heed evaluate runs/bert --text test.txt                # a masked language model: loss and accuracy on masked words
  heed evaluate runs/gpt2 --text test.txt --stride 64    # a sliding window: each token sees more left context
  heed evaluate runs/xl --text test.txt --memory 640     # Transformer-XL with a longer memory
  heed evaluate runs/ctrl --text test.txt --code Reviews
  heed evaluate runs/mrpc --tsv dev.tsv                  # a classifier, with the columns it was trained on
  heed evaluate runs/sts-b --tsv dev.tsv --columns sentence1 sentence2 score --against runs/other
  heed evaluate runs/reviews --source test.txt --reference test.labels
  heed evaluate runs/names --conll test.conll            # a tagger: F1 by entity
  heed evaluate runs/sentences --tsv sts-dev.tsv --columns 1 2 3           # an embedding model: cosines against gold scores
  heed evaluate runs/sentences --source test.ko --reference test.en       # retrieval: is each text's counterpart the nearest?
  heed evaluate runs/sasrec --against runs/cl4srec         # a recommender, on the held-out part of its log
  heed evaluate runs/sasrec --interactions log.csv --at 10
  heed evaluate runs/vit --images test/ --pictures report   # an image classifier; one folder per class
  heed evaluate runs/an4 --audio an4-mfcc --split test     # a speech recognizer: word and character error rates
  heed evaluate runs/squad --squad dev-v2.0.json --against runs/other    # question answering

--sentences writes a table of all sentences, worst first, as .tsv or as an .html page with the differences marked.
--against gives the p-value of a paired bootstrap test for each metric.
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device, add_direction, add_engine, add_reranking
    from heed.cli.hearing import add_audio
    from heed.cli.images import add_images
    from heed.cli.labelled import add_table, add_too_long
    from heed.cli.language import add_context
    from heed.cli.ranking import add_ranking
    from heed.cli.tag import add_conll

    option = parser.add_argument
    option(
        "system", help="a run or model folder (several, separated by commas: an ensemble), or a file of translations"
    )
    option("--source", metavar="FILE", help="the text to translate; required for a model")
    option("--reference", nargs="+", metavar="FILE", help="one or more reference translations")
    option("--text", metavar="FILE", help="for a language model: the text to evaluate on")
    add_context(parser)
    add_table(parser, "for a classifier: texts and labels")
    add_too_long(parser, None, "for a classifier or an embedding model: ")
    add_conll(parser, "for a tagger: words and labels, in a CoNLL file")
    option(
        "--repair",
        action="store_true",
        help="for a tagger: repair labels that violate their scheme, as conlleval does (always, if it was trained with task.repair)",
    )
    option("--squad", metavar="FILE", help="for question answering: a SQuAD JSON file")
    add_images(parser)
    option("--against", metavar="SYSTEM", help="another model or file of translations to compare with")
    option("--sentences", type=Path, metavar="FILE", help="write a table of sentences (.tsv or .html)")
    option("--out", metavar="FILE", help="write the translations to a file")
    option("--json", type=Path, metavar="FILE", help="write the scores as JSON")
    option("--gold", metavar="FILE", help="gold word alignments (0-0 1-2), for the alignment error rate")
    option("--rouge", action="store_true", help="also compute ROUGE-1, ROUGE-2 and ROUGE-L against the first reference")
    option(
        "--phonemes",
        action="store_true",
        help="also compute the phoneme error rate and word accuracy against the nearest reference",
    )
    option("--lowercase", action="store_true", help="lowercase before scoring")
    option(
        "--tokenize", default="13a", help="sacreBLEU's tokenizer: 13a, zh, ja-mecab, ko-mecab, intl, char, flores200"
    )
    option("--samples", type=int, default=1000, help="number of bootstrap samples")
    option("--beam", type=int, help="beam size; 1 is greedy search")
    option("--length-penalty", type=float, help="exponent alpha of the length penalty; larger favours longer output")
    add_reranking(parser)
    add_ranking(parser)
    add_audio(parser)
    add_direction(parser)
    add_device(parser)
    add_engine(parser, "torch")  # so that scores are those of the model itself


def run(args: argparse.Namespace) -> int:
    from heed.cli import answer, embed, fill, hearing, images, labelled, language, ranking, speak, tag
    from heed.cli.common import verbs_of

    verbs = verbs_of(args.system)
    kinds = (  # the first that it is
        (images.reads_images(args.system), images),
        ("transcribe" in verbs, hearing),
        ("speak" in verbs, speak),
        ("recommend" in verbs, ranking),
        ("fill" in verbs, fill),
        (args.conll or "tag" in verbs, tag),
        (args.squad or "answer" in verbs, answer),
        ("embed" in verbs, embed),
        (args.tsv or "classify" in verbs, labelled),
        (args.text, language),
    )
    own = next((own for is_this, own in kinds if is_this), None)
    if args.against and own in (hearing, speak):
        raise ValueError("--against does not support speech models: evaluate each with its own command")
    if args.precision and own is not images:
        raise ValueError("--precision is for image classifiers: leave it out")
    if args.too_long and own not in (labelled, embed):
        raise ValueError("--too-long is for classifiers, regression models and embedding models: leave it out")
    if args.repair and own is not tag:
        raise ValueError("--repair is for taggers: leave it out")
    if own not in (answer, fill, language):  # these have windows, or refuse them themselves
        language.check_context(args)
    return own.evaluate(args) if own else _evaluate_translations(args)


def _evaluate_translations(args: argparse.Namespace) -> int:
    from rich.console import Console

    from heed.cli import suspicions
    from heed.cli.common import write_lines
    from heed.cli.seen import show_seen
    from heed.evaluation.sentence_scores import score_sentences
    from heed.evaluation.translation import metrics, score

    if not args.reference:
        raise ValueError("give something to compare with: --reference FILE, or for a language model --text FILE")
    sources, references = _texts(args)
    options = {"lowercase": args.lowercase, "tokenize": args.tokenize}
    metrics(**options)  # a tokenizer that is not there is reported before anything is translated
    translations, translator = _translations(args.system, sources, args)
    suspicions.warn(args, translator, sources, translations)
    seen = show_seen(filter(None, (args.system, args.against)), sources, references)
    scores = score(translations, references, **options)
    console = Console()
    comparison = second = None
    if args.against:
        from heed.evaluation.comparison import compare

        second, _ = _translations(args.against, sources, args)
        comparison = compare(translations, second, references, samples=args.samples, **options)
        _show_comparison(console, args, comparison)
    else:
        _show(console, scores)
    if args.gold:
        _show_alignment(console, translator, sources, references[0], args.gold)
    rouge = _show_rouge(console, translations, references[0]) if args.rouge else None
    phonemes = _show_phonemes(console, translations, references, args.samples) if args.phonemes else None
    if args.out:
        write_lines(translations, args.out)
    if args.sentences:
        table = score_sentences(translations, references, sources=sources, second=second, **options)
        _write_sentences(args, table, scores, comparison)
        console.print(f"Sentences: {args.sentences}", markup=False, highlight=False, soft_wrap=True)
    if args.json:
        _write_json(args.json, args, scores, comparison, {"rouge": rouge, "phonemes": phonemes}, translator, seen)
    return 0


def _texts(args: argparse.Namespace) -> tuple[list[str] | None, list[list[str]]]:
    """The source, if there is one, and the references, line by line."""
    from heed.cli.common import read_lines

    references = [read_lines(path) for path in args.reference]
    sources = read_lines(args.source) if args.source else None
    for path, reference in zip(args.reference, references, strict=True):  # before anything slow
        if sources is not None and len(reference) != len(sources):
            raise ValueError(
                f"{args.source} has {len(sources):,} lines and {path} {len(reference):,}: they must correspond line by "
                "line"
            )
    if not any(line.strip() for reference in references for line in reference):
        raise ValueError(f"{args.reference[0]} has only empty lines: there is nothing to compare with")
    return sources, references


def _translations(system: str, sources: list[str] | None, args: argparse.Namespace):
    """The lines of a file, or the translations of a model and the model itself."""
    from heed.cli.common import check_product, open_product, read_lines, split_names, verbs_of

    if Path(system).is_file():
        return read_lines(system), None
    wanted = {"classify": "--tsv FILE", "tag": "--conll FILE", "answer": "--squad FILE"}
    verbs = verbs_of(system)
    options = next((option for verb, option in wanted.items() if verb in verbs), "--text FILE")
    check_product(args, split_names(system), "translate", options)
    if sources is None:
        raise ValueError(f"{system} is a model: give the text to translate with --source FILE")
    translator = open_product(args, "translate", split_names(system))
    return _translated(translator, sources, _decoding(args)), translator


def _translated(translator, sources: list[str], decoding: dict) -> list[str]:
    """What heed translate gives for the lines of a file, in its chunks."""
    from heed.cli.translate import CHUNK
    from heed.data.staged import chunks, run
    from heed.products.product import as_texts
    from heed.products.translator import stages
    from heed.text.glossary import Glossary

    if translator.bundle.undirected:
        translator = translator.toward()
    config, found = translator.search_config(decoding), []
    own = stages.searching(
        translator,
        lambda chunk: stages.prepare(translator, as_texts(chunk.items), config, Glossary()),
        lambda work, results: [one.text for one in stages.finish(translator, work, results)],
    )
    size = stages.chunk_size(translator, config, CHUNK)
    run(chunks(sources, size), own, lambda chunk, texts: found.extend(texts))
    return found


def _decoding(args: argparse.Namespace) -> dict:
    from heed.cli.common import RERANKING

    names = ("beam", "length_penalty", *RERANKING)
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def _show(console, scores) -> None:
    for metric in (scores.bleu, scores.chrf, scores.ter):
        line = f"{metric.name:<6}[bold]{metric.value:>7.2f}[/]  {metric.signature}"
        console.print(line, highlight=False, soft_wrap=True)
    console.print(f"[dim]{scores.lines:,} sentences; for TER, lower is better[/]", highlight=False)


def _show_rouge(console, summaries: list[str], references: list[str]):
    from heed.evaluation import rouge

    scores = rouge.score(summaries, references)
    for name, part in (("ROUGE-1", scores.one), ("ROUGE-2", scores.two), ("ROUGE-L", scores.longest)):
        parts = f"precision {100 * part.precision:.2f}, recall {100 * part.recall:.2f}"
        line = f"{name} [bold]{100 * part.f1:>6.2f}[/]  {parts}  {scores.signature}"
        console.print(line, highlight=False, soft_wrap=True)
    return scores


def _show_phonemes(console, found: list[str], references: list[list[str]], samples: int):
    from heed.evaluation import phonemes

    scores = phonemes.score(found, references, samples)
    per = scores.per
    console.print(
        f"phoneme error rate [bold]{per.rate:.2f}[/] % ({per.low:.2f} to {per.high:.2f}), word accuracy [bold]{scores.accuracy:.2f}[/] %  "
        f"[dim]{per.substitutions:,} substitutions, {per.deletions:,} deletions, {per.insertions:,} insertions in {per.units:,} phonemes; "
        "95 % interval, bootstrapped over words[/]",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
    return scores


def _show_comparison(console, args: argparse.Namespace, comparison) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="dim", padding=(0, 2))
    for name in ("metric", args.system, args.against, "difference", "p"):
        table.add_column(name, justify="left" if name == "metric" else "right", overflow="fold")
    for one in (comparison.bleu, comparison.chrf, comparison.ter):
        first, second = f"{one.first:.2f} ± {one.first_width:.2f}", f"{one.second:.2f} ± {one.second_width:.2f}"
        table.add_row(one.name, first, second, f"{one.second - one.first:+.2f}", f"{one.p_value:.4f}")
    console.print(table)
    for one in (comparison.bleu, comparison.chrf, comparison.ter):
        console.print(f"[dim]{one.name:<6}{one.signature}[/]", highlight=False, soft_wrap=True)
    console.print(
        f"[dim]{comparison.lines:,} sentences, paired bootstrap of {comparison.samples:,} samples; ± is the half-width "
        "of the 95 % interval; p below 0.05: unlikely to be chance; for TER, lower is better[/]",
        highlight=False,
    )


def _show_alignment(console, translator, sources: list[str], references: list[str], path: str) -> None:
    from heed.evaluation import alignment

    if translator is None:
        raise ValueError("--gold needs a model that can align: give a run or a model folder, not a file")
    sure, possible = alignment.read_gold(path)
    if len(sure) != len(sources):
        raise ValueError(
            f"{path} has {len(sure):,} lines and the source {len(sources):,}: they must correspond line by line"
        )
    links = [set(own) for own in translator.align_pairs(sources, references)]
    rate = alignment.error_rate(links, sure, possible)
    console.print(
        f"alignment error rate {100 * rate:.1f} % (precision {100 * alignment.precision(links, sure, possible):.1f} %, "
        f"recall {100 * alignment.recall(links, sure):.1f} %), from the cross attention to the references",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _write_sentences(args: argparse.Namespace, table, scores, comparison) -> None:
    from heed.evaluation.sentences import write
    from heed.lab.viewer import embedded

    names = args.system, args.against or "B"
    write(table, scores, args.sentences, comparison=comparison, names=names, font_faces=embedded)


def _write_json(path: Path, args: argparse.Namespace, scores, comparison, more, translator, seen) -> None:
    from heed.files import write_json

    facts = {"system": args.system, "scores": asdict(scores)}
    if translator is not None:
        facts["engine"] = translator.engine(**_decoding(args))
    if seen:
        facts["trained_on"] = seen
    facts |= {name: asdict(own) for name, own in more.items() if own is not None}
    if comparison is not None:
        facts |= {"against": args.against, "comparison": asdict(comparison)}
    write_json(path, facts)
