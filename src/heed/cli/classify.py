"""heed classify"""

import argparse
from typing import Any

EXAMPLES = """\
examples:
  heed classify runs/reviews < texts.txt > labels.txt
  heed classify runs/reviews --input texts.txt --out labels.txt --resume   # after a crash, from where it stopped
  heed classify runs/reviews "What a film." "I left early."
  heed classify runs/reviews --scores < texts.txt        # with the probability before each label
  heed classify runs/reviews --reference test.labels < test.txt
  heed classify runs/sts-b "A man sings.<tab>A man is singing."     # tabs separate the parts of a pair or the choices
  heed classify runs/mrpc --tsv msr_paraphrase_test.txt             # same columns as in training
  heed classify runs/swag --tsv test.jsonl --columns ctx endings
  heed classify runs/vit cat.png photos/                            # an image model: the five most likely classes of each image
  heed train --from facebook/bart-base --set task.name=classification --source train.txt --target train.labels --out runs/reviews
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.bulk.command import add_resume
    from heed.cli.common import add_device, add_encoder_engine, add_max_pixels, add_precision
    from heed.cli.labelled import add_table, add_too_long

    parser.add_argument("folder", help="a run, a model folder, or a name on the hub")
    parser.add_argument(
        "text", nargs="*", help="texts (default: lines of standard input); for an image model, images and folders"
    )
    parser.add_argument("--input", metavar="FILE", help="read lines from a file")
    add_table(parser, "read texts")
    parser.add_argument("--out", metavar="FILE", help="write labels to a file, one per line")
    add_resume(parser)
    parser.add_argument("--scores", action="store_true", help="write the probability and a tab before each label")
    parser.add_argument(
        "--reference",
        metavar="FILE",
        help="reference labels, to print the accuracy, or reference numbers, to print correlations; all texts are read at once",
    )
    parser.add_argument(
        "--top", type=int, default=5, metavar="K", help="how many classes to list per image (default: 5)"
    )
    add_too_long(parser)
    parser.add_argument(
        "--batch-tokens", type=int, help="maximum number of subwords per batch (default: 4,096; on a GPU 32,768)"
    )
    add_max_pixels(parser)
    add_precision(parser)
    add_encoder_engine(parser, classifies=True)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.bulk.command import check_resume
    from heed.cli import images
    from heed.cli.common import open_product, read_lines, write_lines
    from heed.cli.labelled import Cut, table_texts
    from heed.products.text_batches import in_precision

    if images.reads_images(args.folder, args.verb):
        check_resume(args, False, "a text model, --input FILE")
        return images.classify(args)
    if args.text and args.input:
        raise ValueError("give either texts or --input, not both")
    if args.tsv and (args.text or args.input):
        raise ValueError("give either --tsv or texts, not both")
    check_resume(args, bool(args.input and not args.reference), "--input FILE, without --reference,")
    classifier = open_product(args, "classify")
    in_precision(classifier.model, args.precision)
    if args.scores and not classifier.labelled:
        raise ValueError(f"{args.folder} is {classifier.noun}: it predicts no probabilities; leave --scores out")
    if classifier.in_any_chunks and not (args.tsv or args.reference):
        _classify_lines(classifier, args)
        return 0
    if args.resume:
        raise ValueError(
            f"{args.folder} does not say how many parts its texts have, so it needs all of them at once: leave out --resume"
        )
    lines = [] if args.tsv else args.text or read_lines(args.input)
    texts = table_texts(args, classifier) if args.tsv else [classifier.joined(line) for line in lines]
    expected = _expected(args, classifier, len(texts))
    read = classifier.read(texts, too_long=args.too_long)
    found = classifier.outputs_of(read, args.batch_tokens)
    write_lines((_line(one, args.scores) for one in classifier.labelling(texts, found)), args.out)
    Cut(len(texts), read.cut).say(classifier.room)
    if expected is not None:
        _measure(classifier, found, expected)
    return 0


def _classify_lines(classifier, args: argparse.Namespace) -> None:
    """Texts, or lines of any number, in the chunks that the classifier itself reads."""
    from heed.bulk import command
    from heed.cli.common import stream_lines
    from heed.cli.labelled import Cut
    from heed.data.staged import Stages, chunks
    from heed.products.classifier import ReadTexts
    from heed.products.text_batches import CHUNK

    def prepare(chunk) -> tuple[list, ReadTexts]:
        texts = [classifier.joined(line) for line in chunk.items]
        return texts, classifier.read(texts, too_long=args.too_long, before=chunk.start)

    def finish(prepared: tuple[list, ReadTexts], found) -> command.Noted:
        lines = command.as_bytes(_line(one, args.scores) for one in classifier.labelling(prepared[0], found))
        return command.Noted(lines, (len(found), prepared[1].cut))

    size = command.chunk_size(args, CHUNK, args.text or args.input)

    def settings() -> dict:
        names = ("batch_tokens", "too_long", "scores", "precision", "engine")
        return command.settings_of(classifier, **{name: getattr(args, name) for name in names}, chunk=size)

    stages = Stages(prepare, lambda own: classifier.outputs_of(own[1], args.batch_tokens), finish, numbered=True)
    source = chunks(args.text or stream_lines(args.input), size)
    cut = Cut()
    cut.add_notes(command.process(source, stages, args, settings, [args.input] if args.input else []))
    cut.say(classifier.room)


def _expected(args: argparse.Namespace, classifier, texts: int) -> Any:
    """The reference labels, one per text, as the classifier compares them."""
    from heed.cli.common import read_lines
    from heed.cli.labelled import in_file
    from heed.vocabularies.labels import Labels

    expected = [Labels([]).clean(line) for line in read_lines(args.reference)] if args.reference else None
    if expected is not None and len(expected) != texts:
        raise ValueError(f"{args.reference} has {len(expected):,} labels for {texts:,} texts: the numbers must match")
    return None if expected is None else classifier.expected(expected, in_file(args.reference))


def _measure(classifier, found, expected) -> None:
    from heed.cli.common import errors

    predicted = classifier.predictions(found)
    if not classifier.labelled:
        shown = ", ".join(f"{name} {value:.2f}" for name, value in classifier.measure(predicted, expected).items())
        errors().print(f"{shown} of {len(expected):,}", highlight=False)
        return
    right = int((predicted == expected).sum())
    errors().print(f"accuracy {100 * right / max(1, len(expected)):.2f} % of {len(expected):,}", highlight=False)


def _line(result, scores: bool) -> str:
    return f"{result.probabilities[result.label]:.4f}\t{result.label}" if scores else result.label
