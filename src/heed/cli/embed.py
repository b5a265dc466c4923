"""heed embed"""

import argparse
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from heed.cli.labelled import Cut, add_too_long

EXAMPLES = """\
examples:
  heed embed runs/sentences --input texts.txt --out vectors.npy            # float32, one row per line
  heed embed runs/sentences --input corpus.txt --out vectors.npy --resume  # after a crash, from where it stopped
  heed embed sentence-transformers/all-MiniLM-L6-v2 --search texts.txt "Where is the station?"
  heed embed runs/sentences --search texts.txt --top 3 < queries.txt
  heed embed runs/sentences --pairs pairs.tsv                              # the cosine similarity of the two texts on each line
  heed embed google-bert/bert-base-multilingual-cased --pool cls --normalize --input texts.txt --out vectors.npy
  heed embed runs/vit photos/ --out vectors.npy                            # an image model: one vector per image
  heed embed runs/vit cat.png --search photos/ --top 3                     # the most similar images

Any encoder can embed: a pre-trained one, the body of a classifier, a transformers or sentence-transformers folder.
One trained for it is far better: task.name = "embedding" (docs/guides/embeddings.md).
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.bulk.command import add_resume
    from heed.cli.common import add_device, add_encoder_engine, add_max_pixels, add_precision

    option = parser.add_argument
    option("folder", help="a run, a model folder, or a name on the hub")
    option("text", nargs="*", help="texts or queries (default: lines of standard input)")
    option("--input", metavar="FILE", help="read lines from a file")
    option("--out", type=Path, metavar="FILE", help="write the vectors to a .npy file; with --search and --pairs, text")
    add_resume(parser)
    option("--search", type=Path, metavar="FILE", help="find the lines of this file most similar to each text")
    option("--top", type=int, default=10, metavar="K", help="how many lines --search returns (default: 10)")
    option("--pairs", metavar="FILE", help="a two-column table: write the cosine similarity of each pair")
    option(
        "--pool",
        choices=["mean", "cls", "max"],
        help="pooling of the states (default: as the model folder specifies, else mean)",
    )
    option("--normalize", action="store_true", help="scale vectors to length 1")
    add_too_long(parser)
    option("--batch-tokens", type=int, help="maximum number of subwords per batch (default: 4,096; on a GPU 32,768)")
    add_max_pixels(parser)
    add_precision(parser)
    add_encoder_engine(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.bulk.command import check_resume
    from heed.cli import images
    from heed.cli.common import open_product, write_chunks, write_lines
    from heed.evaluation.retrieval import row_cosines
    from heed.products.text_batches import in_precision

    _check(args)
    if images.reads_images(args.folder, "embed"):
        check_resume(args, False, "a text model, --input FILE")
        return images.embed(args)
    embedder = open_product(args, "embed")
    in_precision(embedder.model, args.precision)
    embedder.pooling, embedder.normalize = args.pool or embedder.pooling, args.normalize or embedder.normalize
    options = {"batch_tokens": args.batch_tokens, "too_long": args.too_long}
    if args.pairs:
        pairs, cut = _pairs(args.pairs), Cut()
        cosines = row_cosines(*(_vectors(embedder, texts, options, cut) for texts in pairs))
        write_lines((f"{cosine:.6f}" for cosine in cosines), args.out)
        cut.say(embedder.room)
        return 0
    if args.search:
        write_chunks(_found(embedder, args, options), args.out)
        return 0
    _write_vectors(embedder, args, options)
    return 0


def _vectors(embedder, texts: list[str], options: dict, cut: Cut):
    """The vectors of texts; `cut` counts those that are truncated."""
    read = embedder.read(texts, too_long=options["too_long"])
    cut.add(len(texts), read.cut)
    return embedder.embed_ids(read.ids, options.get("batch_tokens"))


def _check(args: argparse.Namespace) -> None:
    from heed.bulk.command import check_resume

    check_resume(args, bool(args.input and not args.search))
    if args.text and args.input:
        raise ValueError("give either texts or --input, not both")
    if args.pairs and (args.text or args.input or args.search):
        raise ValueError("--pairs already contains texts: leave out other texts, --input and --search")
    if not (args.out or args.search or args.pairs):
        raise ValueError("vectors are written to a file: give --out vectors.npy, or use --search or --pairs")
    if args.top < 1:
        raise ValueError(f"--top is {args.top}; it must be at least 1")
    if args.batch_tokens is not None and args.batch_tokens < 1:
        raise ValueError(f"--batch-tokens is {args.batch_tokens}; it must be at least 1")
    if args.out and not (args.search or args.pairs) and args.out.suffix != ".npy":
        raise ValueError(f"--out is {args.out}; vectors are written in NumPy format: name it {args.out.stem}.npy")


def _pairs(name: str) -> tuple[list[str], list[str]]:
    from heed.data.tables import rows

    cells = [row for _, row in rows(Path(name), [1, 2])]
    return [str(one) for one, _ in cells], [str(other) for _, other in cells]


def _found(embedder, args: argparse.Namespace, options: dict) -> Iterator[list[str]]:
    """The most similar lines for each query, in chunks of queries: cosine, line number and line."""
    from heed.bulk import command
    from heed.cli.common import read_lines, stream_lines
    from heed.data.staged import chunks
    from heed.products.text_batches import CHUNK
    from heed.products.vector_cache import cached_vectors

    size = command.chunk_size(args, CHUNK, args.text or args.input)
    queries = chunks(args.text or stream_lines(args.input), size)
    queries = chain(list(islice(queries, 1)), queries)  # a file that cannot be read is reported before any work
    texts, cut = read_lines(str(args.search)), Cut()
    vectors = cached_vectors(embedder, texts, **options)
    if args.too_long == "cut":  # vectors that are cached were not read now
        cut.add(len(texts), embedder.read(texts, too_long="cut").cut)
    for chunk in queries:
        if args.too_long == "cut":
            cut.add(len(chunk.items), embedder.read(chunk.items, too_long="cut").cut)
        several = size == 1 or chunk.start + len(chunk.items) > 1
        matches = embedder.search(chunk.items, texts, vectors, args.top, before=chunk.start, **options)
        yield [line for own in zip(chunk.items, matches, strict=True) for line in _match_lines(*own, several)]
    cut.say(embedder.room)


def _match_lines(query: str, matches: list, several: bool) -> list[str]:
    """The matches of a query; where there are several queries, below it."""
    lines = [f"{match.cosine:.4f}\t{match.row + 1}\t{match.text}" for match in matches]
    return [query, *lines, ""] if several else lines


def _write_vectors(embedder, args: argparse.Namespace, options: dict) -> None:
    from time import perf_counter

    from heed.cli.common import errors

    start, cut = perf_counter(), Cut()
    if args.input in (None, "-"):
        count = _embed_lines(embedder, args, cut)
    else:
        count = _embed_file(embedder, args, options, cut)
    seconds = perf_counter() - start
    cut.say(embedder.room)
    line = f"{count:,} texts, vectors of {embedder.dim} ({embedder.pooling}) in {args.out}; {count / max(seconds, 1e-9):,.0f} texts/s"
    errors().print(f"[dim]{line}[/]", highlight=False, soft_wrap=True)


def _stages(embedder, args: argparse.Namespace):
    """Subwords, vectors and their bytes, in the chunks that the embedder itself reads."""
    from heed.bulk.command import Noted
    from heed.data.staged import Stages
    from heed.products.product import as_texts

    return Stages(
        lambda chunk: (embedder.read(as_texts(chunk.items), too_long=args.too_long, before=chunk.start), chunk.start),
        lambda read: embedder.embed_ids(read[0].ids, args.batch_tokens, read[1]),
        lambda read, found: Noted(found.tobytes(), (len(found), read[0].cut)),
        numbered=True,
    )


def _embed_lines(embedder, args: argparse.Namespace, cut: Cut) -> int:
    """The vectors of texts, or of the lines of standard input, whose number is known only at the end; returns it. `cut` counts
    the texts that are truncated.
    """
    from heed.bulk.command import Noted, read_ahead
    from heed.cli.common import input_lines
    from heed.data.staged import Chunk, chunks, run
    from heed.files import atomic_file
    from heed.products.text_batches import CHUNK

    with atomic_file(args.out) as part, open(part, "wb") as file:

        def write(chunk: Chunk, found: Noted) -> None:
            file.write(found.data)
            file.flush()
            cut.add(*found.note)

        file.write(_npy_head(0, embedder.dim))  # of the same length as that of any number of vectors
        run(chunks(args.text or input_lines(args.input), CHUNK), _stages(embedder, args), write, read_ahead(args.input))
        file.seek(0)
        file.write(_npy_head(cut.total, embedder.dim))
    return cut.total


def _embed_file(embedder, args: argparse.Namespace, options: dict, cut: Cut) -> int:
    """The vectors of a file of any length; returns how many. `cut` counts the texts that are truncated."""
    from heed.bulk import command
    from heed.cli.common import input_lines
    from heed.data.staged import chunks
    from heed.products.text_batches import CHUNK

    count = sum(1 for _ in input_lines(args.input))  # which also finds errors before anything is written

    size = command.chunk_size(args, CHUNK, args.input)

    def settings() -> dict:
        given = {"pooling": embedder.pooling, "normalize": embedder.normalize}
        given |= {"precision": args.precision, "engine": args.engine}
        return command.settings_of(embedder, **options, **given, chunk=size)

    file = command.recorded(args.out, settings, _npy_head(count, embedder.dim))
    if file is None:
        raise ValueError(f"--out is {args.out}, a pipe or a device: vectors are written to a file")
    command.to_recorded(chunks(input_lines(args.input), size), _stages(embedder, args), file, args.resume)
    cut.add_notes(file.notes)
    return count


def _npy_head(rows: int, columns: int) -> bytes:
    """The header of a .npy file with this many vectors."""
    import io

    import numpy as np

    head = io.BytesIO()
    facts = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.float32)), "fortran_order": False}
    np.lib.format.write_array_header_1_0(head, {**facts, "shape": (rows, columns)})
    return head.getvalue()


def evaluate(args: argparse.Namespace) -> int:
    """Correlation of cosines with the scores of a table, or retrieval: how well each text's counterpart is found."""
    from heed.cli.common import open_product
    from heed.cli.scores import show_scores
    from heed.cli.seen import show_seen_texts
    from heed.evaluation.classification import number_scores
    from heed.evaluation.retrieval import rank_scores, ranks, row_cosines

    if not args.tsv and not (args.source and args.reference):
        raise ValueError(
            f"{args.system} is an embedding model: give pairs of texts with a score each, --tsv FILE --columns 1 2 3, "
            "or parallel texts, --source FILE and --reference FILE"
        )
    names = [name for name in (args.system, args.against) if name]
    models = [open_product(args, "embed", [name]) for name in names]
    one, other, expected = _scored(args) if args.tsv else (*_counterparts(args), None)
    options, cuts = {"too_long": args.too_long or "cut"}, [Cut() for _ in models]
    vectors = [
        [_vectors(model, texts, options, cut) for texts in (one, other)]
        for model, cut in zip(models, cuts, strict=True)
    ]
    if args.tsv:
        found, measure = [row_cosines(*own) for own in vectors], number_scores
        what = f"{len(one):,} pairs; cosine similarity against the scores in {args.tsv}"
    else:
        found, measure = [ranks(*own, other) for own in vectors], rank_scores
        expected = found[0] * 0 + 1
        what = f"{len(one):,} texts, each searched among {len(set(other)):,}"
    seen = show_seen_texts(names, [*one, *other])
    for name, model, cut in zip(names, models, cuts, strict=True):
        cut.say(model.room, name)
    more = {"trained_on": seen, "cut": {name: cut.count for name, cut in zip(names, cuts, strict=True)}}
    show_scores(args, measure, found, expected, what, more)
    return 0


def _scored(args: argparse.Namespace):
    from heed.tasks.embedding import read_scored

    columns = [int(name) if name.isdecimal() else name for name in args.columns or ("1", "2", "3")]
    if len(columns) != 3:
        raise ValueError(f"--columns has {len(columns)}; three are needed: two texts and a number")
    found = read_scored([args.tsv], columns)
    if found is None:
        raise ValueError(f"{args.tsv} is empty")
    return found


def _counterparts(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Texts and their counterparts."""
    from heed.cli.common import read_lines

    one, other = read_lines(args.source), read_lines(args.reference[0])
    if len(one) != len(other):
        raise ValueError(
            f"{args.source} has {len(one):,} lines and {args.reference[0]} {len(other):,}: they must correspond line "
            "by line"
        )
    return one, other
