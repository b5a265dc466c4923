"""heed answer"""

import argparse
import json
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

EXAMPLES = """\
examples:
  heed answer runs/squad --context article.txt "Who wrote it?" "When?"
  heed answer runs/squad --context article.txt --n 5 --json "Who wrote it?"    # with probabilities and characters
  printf 'Who sings?\\tAnn sings.\\n' | heed answer runs/squad                  # a question, a tab, its context
  heed answer runs/squad --input questions.tsv --out answers.txt --resume      # after a crash, from where it stopped
  heed answer runs/squad --squad dev-v2.0.json --out predictions.json          # in the format of SQuAD's script
  heed answer runs/squad --threshold 0 --context article.txt "Who wrote it?"   # allow "no answer"
  heed answer runs/bigbird-qa --window 4096 --context book.txt "Who wrote it?"  # a long context at once
  heed train recipes/question-answering.toml --out runs/squad
"""


CHUNK = 256  # questions that are answered together: each may have a long context
WINDOWS = ("window", "stride")


def add(parser: argparse.ArgumentParser) -> None:
    from heed.bulk.command import add_resume
    from heed.cli.common import add_device

    option = parser.add_argument
    option("folder", help="a run, a model folder, or a name on the hub")
    option("text", nargs="*", help="questions (default: lines of standard input)")
    option(
        "--context",
        metavar="FILE",
        help="the text that contains the answers; without it, each line is a question, a tab and its context",
    )
    option("--input", metavar="FILE", help="read lines from a file")
    option("--squad", metavar="FILE", help="answer the questions in a SQuAD JSON file")
    option("--out", metavar="FILE", help="write to a file; with --squad, {id: answer} as the official script expects")
    add_resume(parser)
    option("--n", type=int, default=1, metavar="N", help="how many answers per question, best first")
    option("--json", action="store_true", help="JSON lines, with probabilities and character offsets")
    line = "give no answer where its score exceeds the best answer's by more than this (default: the model's own threshold)"
    option("--threshold", type=float, help=line)
    line = "a longer context is read in windows of N tokens, question included (default: as in training; of a model by transformers 384, BigBird all its positions)"
    option("--window", type=int, metavar="N", help=line)
    option("--stride", type=int, metavar="N", help="context tokens that two windows share (default: as in training)")
    option("--batch-tokens", type=int, default=4096, help="maximum number of subwords per batch")
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.bulk.command import check_resume
    from heed.cli.common import open_product

    if args.squad and (args.context or args.text or args.input):
        raise ValueError("--squad already contains questions and contexts: leave out the others")
    if args.text and args.input:
        raise ValueError("give either questions or --input, not both")
    if args.n < 1:
        raise ValueError(f"--n is {args.n}; it must be at least 1")
    check_resume(args, bool(args.input))
    product = open_product(args, "answer")
    product.use_windows(args.window, args.stride)
    return _squad(args, product) if args.squad else _answer(args, product)


def _answer(args: argparse.Namespace, product: Any) -> int:
    """The answers to the questions of lines."""
    from heed.bulk import command
    from heed.bulk.recorded import digest
    from heed.cli.common import read_lines, stream_lines
    from heed.data.staged import Stages, chunks

    context = "\n".join(read_lines(args.context)) if args.context else None

    def prepare(chunk) -> tuple[list, list]:
        pairs = _pairs(chunk.items, context, chunk.start)
        return pairs, product.inputs(pairs)

    def finish(prepared: tuple[list, list], found: list) -> command.Noted:
        answers = product.finish(*prepared, found, args.n, args.threshold)
        lines = command.as_bytes(_lines(prepared[0], answers, args))
        return command.Noted(lines, _counts(answers))

    size = command.chunk_size(args, CHUNK, args.text or args.input)

    def settings() -> dict:
        given = {name: getattr(args, name) for name in ("n", "json", "threshold", "batch_tokens")}
        given |= {name: value for name in WINDOWS if (value := getattr(args, name)) is not None}
        return command.settings_of(product, context=digest([context or ""]), **given, chunk=size)

    stages = Stages(prepare, lambda prepared: product.logits(prepared[1], args.batch_tokens), finish, numbered=True)
    source = chunks(args.text or stream_lines(args.input), size)
    notes = command.process(source, stages, args, settings, [args.input] if args.input else [])
    _remark(map(sum, zip_longest(*notes, fillvalue=0)), product)  # an earlier version noted two numbers
    return 0


def _pairs(lines: list[str], context: str | None, before: int) -> list[tuple[str, str]]:
    """Questions with their contexts; `before` is the number of lines before these."""
    if context is not None:
        return [(line, context) for line in lines]
    for number, line in enumerate(lines, before + 1):
        if "\t" not in line:
            raise ValueError(
                f"line {number} has no tab: put one between the question and its context, or give --context FILE"
            )
    return [(question, context) for question, _, context in (line.partition("\t") for line in lines)]


def _lines(pairs: list, found: list, args: argparse.Namespace) -> Iterator[str]:
    for (question, _), own in zip(pairs, found, strict=True):
        if args.json:
            yield json.dumps({"question": question, "answers": _fields(own)}, ensure_ascii=False)
            continue
        if not own.best:
            yield ""
        for one in own.best:
            text = " ".join(one.text.split())
            yield text if args.n == 1 else f"{one.probability:.4f}\t{text}"


def _fields(own: Any) -> list[dict[str, Any]]:
    names = ("text", "start", "end", "probability", "score")
    return [{name: getattr(one, name) for name in names} for one in own.best]


def _counts(answers: list) -> list[int]:
    """How many questions there are, how many were truncated, and how many were read in several windows."""
    return [len(answers), sum(own.cut for own in answers), sum(own.windows > 1 for own in answers)]


def _remark(counts: Iterable[int], product: Any) -> None:
    from heed.cli.common import errors

    questions, cut, split, *_ = [*counts, 0, 0, 0]
    lines = []
    if cut:
        lines.append(
            f"{cut:,} of {questions:,} questions are longer than {product.longest_question} subwords and were truncated."
        )
    if split:
        lines.append(
            f"{split:,} of {questions:,} questions have a context longer than a window of {product.sizes.max_length} tokens, "
            "which was read in several (--window)."
        )
    for line in lines:
        errors().print(f"[dim]{line}[/]", highlight=False)


def _squad(args: argparse.Namespace, product: Any) -> int:
    from heed.cli.common import write_chunks, write_lines
    from heed.data import squad
    from heed.data.staged import chunks

    questions, counts = squad.read(Path(args.squad)), []

    def answered() -> Iterator[list[tuple[Any, Any]]]:
        for chunk in chunks(questions, CHUNK):
            pairs = [(one.text, one.context) for one in chunk.items]
            found = product.answer(pairs, n=args.n, threshold=args.threshold, batch_tokens=args.batch_tokens)
            counts.append(_counts(found))
            yield list(zip(chunk.items, found, strict=True))

    if args.json or args.n > 1:
        lines = (
            [json.dumps({"id": one.id, "answers": _fields(own)}, ensure_ascii=False) for one, own in rows]
            for rows in answered()
        )
        write_chunks(lines, args.out)
    else:
        texts = {one.id: own.text for rows in answered() for one, own in rows}
        write_lines([json.dumps(texts, ensure_ascii=False, indent=2)], args.out)
    _remark(map(sum, zip(*counts, strict=True)), product)
    return 0


def evaluate(args: argparse.Namespace) -> int:
    """Score the answers to questions."""
    import numpy as np

    from heed.cli.common import errors, open_product, write_lines
    from heed.cli.language import check_context
    from heed.cli.scores import show_scores
    from heed.cli.seen import show_seen_texts
    from heed.data import squad
    from heed.evaluation.answering import answer_scores, measure, measure_both

    if not args.squad:
        raise ValueError(f"{args.system} is a question-answering model: give questions and answers with --squad FILE")
    check_context(args, WINDOWS)
    questions = squad.read(Path(args.squad))
    unknown = [one.id for one in questions if not one.answered]
    if unknown:
        raise ValueError(f"{args.squad}, question {unknown[0]} has no reference answers: it comes from a test set")
    expected = [[answer.text for answer in one.answers] for one in questions]
    answerable = np.array([bool(own) for own in expected])
    pairs, found = [(one.text, one.context) for one in questions], []
    seen = show_seen_texts(filter(None, (args.system, args.against)), [one.context for one in questions])
    for name in filter(None, (args.system, args.against)):
        product = open_product(args, "answer", [name])
        product.use_windows(args.window, args.stride)
        found.append(product.answer(pairs))
        _remark(_counts(found[-1]), product)
    scores = [answer_scores([one.text for one in own], expected) for own in found]
    how, what = measure if answerable.all() else measure_both, f"{len(questions):,} questions"
    show_scores(args, how, scores, answerable, what, {"trained_on": seen})
    if wrong := squad.misaligned_answers(questions):
        line = f"{wrong}; they count, since scores compare texts."
        errors().print(line, style="dim", markup=False, highlight=False)
    if args.out:
        texts = {one.id: own.text for one, own in zip(questions, found[0], strict=True)}
        write_lines([json.dumps(texts, ensure_ascii=False, indent=2)], args.out)
    return 0
