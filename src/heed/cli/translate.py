"""heed translate"""

import argparse
from collections.abc import Iterator
from dataclasses import asdict, replace

EXAMPLES = """\
examples:
  heed translate runs/en-de < test.en > test.hyp
  heed translate runs/en-de "A man is sleeping." "Two dogs play."
  heed translate runs/en-de --input corpus.en --out corpus.de --resume   # after a crash, from where it stopped
  heed translate runs/en-de --beam 5 --nbest 5 --scores < test.en
  heed translate runs/en-de --align "A man is sleeping."
  heed translate runs/many --to de < test.en             # a multilingual model (docs/guides/data.md)
  heed translate runs/a,runs/b,runs/c < test.en          # an ensemble
  heed translate runs/en-de --sample --top-p 0.9 --seed 7 < test.en
  heed translate runs/en-de --rerank mbr < test.en       # minimum Bayes risk over 16 candidates (docs/guides/search.md)
  heed translate runs/en-de --prefix "Ein Hund" "A dog is sleeping."
  heed translate runs/en-ko --glossary '{"Tobigs": "투빅스"}' "Tobigs likes books."   # or --glossary terms.tsv
  heed translate runs/en-de --keep Heed --keep "Studio 54" < notes.en
  heed translate runs/en-de --sentences < letter.txt     # split lines into sentences; keep URLs and long numbers
  heed translate runs/en-de --file letter.docx --out brief.docx
  heed translate runs/speech-ko-en talk.wav              # speech to text in another language (docs/guides/speech.md)
  heed translate runs/en-de --file words.tsv --column 2 --out woerter.tsv
  heed translate Helsinki-NLP/opus-mt-ko-en "나는 책을 읽어요."       # a name on the Hugging Face Hub, or a downloaded folder
  heed translate facebook/nllb-200-distilled-600M --from ko --to en "나는 책을 읽어요."   # a multilingual model

One line in, one line out. Each line is translated as a whole; with --sentences, sentence by sentence. --nbest writes
that many lines for each; --scores puts the score (log probability over the length penalty) and a tab before each;
--token-scores and --align append theirs. --file keeps the layout of a document: .txt .md .html .srt .vtt .tsv .docx
(docs/guides/documents.md).
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_batches, add_device, add_direction, add_engine, add_reranking, split_names

    names = "a run, a model folder, or a name on the hub; several, separated by commas, form an ensemble"
    parser.add_argument("folder", type=split_names, help=names)
    parser.add_argument("text", nargs="*", help="sentences (default: lines of standard input)")
    _add_files(parser)
    parser.add_argument(
        "--sentences", action="store_true", help="split lines into sentences and translate each, as the service does"
    )
    document = parser.add_argument_group("documents")
    document.add_argument("--file", metavar="FILE", help="translate a document into --out, in the same format")
    document.add_argument("--column", type=int, metavar="N", help="the .tsv column to translate, counted from 1")
    document.add_argument(
        "--format", choices=["text", "md", "html", "srt", "vtt", "tsv", "docx"], help="default: by file extension"
    )
    document.add_argument("--force", action="store_true", help="overwrite an existing --out file")
    terms = parser.add_argument_group("terms (docs/guides/glossary.md)")
    terms.add_argument(
        "--glossary", metavar="FILE", help="term translations: JSON, or lines with a term, a tab and its translation"
    )
    terms.add_argument(
        "--keep", metavar="TERM", action="append", default=[], help="a term to leave untranslated; may be repeated"
    )
    search = parser.add_argument_group("search (default: the model's settings)")
    search.add_argument("--beam", type=int, help="beam size; 1 is greedy search")
    search.add_argument("--nbest", type=int, help="number of translations per sentence")
    search.add_argument(
        "--length-penalty", type=float, help="exponent alpha of the length penalty; larger favours longer output"
    )
    search.add_argument("--penalty", choices=["wu", "length"], help="((5 + length) / 6)^alpha, or length^alpha")
    search.add_argument("--stopping", choices=["exact", "heuristic", "first"], help="when to stop the search")
    search.add_argument("--min-length", type=int, help="minimum number of tokens")
    search.add_argument("--max-length", type=int, help="maximum number of tokens")
    search.add_argument("--no-repeat", type=int, metavar="N", help="never repeat a sequence of N tokens")
    search.add_argument("--prefix", help="force each translation to begin with this")
    add_reranking(search)
    sampling = parser.add_argument_group("sampling")
    sampling.add_argument("--sample", action="store_true", default=None, help="sample each token instead of searching")
    sampling.add_argument("--temperature", type=float, help="above 1: more varied; below 1: closer to greedy")
    sampling.add_argument("--top-k", type=int, help="sample from the K most likely tokens")
    sampling.add_argument("--top-p", type=float, help="sample from the smallest set of tokens with total probability P")
    sampling.add_argument("--seed", type=int, help="random seed; the same seed gives the same translations")
    output = parser.add_argument_group("output")
    output.add_argument("--scores", action="store_true", help="write the score before each translation")
    output.add_argument("--token-scores", action="store_true", help="append the log probability of each token")
    output.add_argument("--align", action="store_true", help="append word alignments, as 0-0 1-2")
    add_batches(parser, ["split", "refuse"], "texts")
    add_direction(parser)
    add_device(parser)
    add_engine(parser)


def _add_files(parser: argparse.ArgumentParser) -> None:
    from heed.bulk.command import add_resume

    parser.add_argument("--input", metavar="FILE", help="read lines from a file")
    parser.add_argument("--out", metavar="FILE", help="write lines, or the document of --file, to a file")
    add_resume(parser)


CHUNK = 2000  # lines that are translated together: few enough that the first results come early; a GPU takes more
DECODING = ("beam", "nbest", "length_penalty", "penalty", "stopping", "min_length", "max_length", "no_repeat",
            "sample", "temperature", "top_k", "top_p", "seed")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from heed.cli import quick_translate
    from heed.cli.common import RERANKING, write_lines

    chosen = {name: getattr(args, name) for name in (*DECODING, *RERANKING) if getattr(args, name) is not None}
    folder = quick_translate.folder(args)
    quick = quick_translate.translate(folder, args, chosen, CHUNK) if folder else quick_translate.Attempt()
    if quick.translations is not None:
        write_lines(_plain_lines(quick.translations, args), args.out)
        return 0
    return _run(args, chosen, folder, quick)


def _run(args: argparse.Namespace, chosen: dict, folder, quick) -> int:
    from heed.cli import quick_translate, transcribe
    from heed.cli.common import open_product, verbs_of
    from heed.products.translator.engines.continued import Continued

    if len(args.folder) == 1 and "transcribe" in verbs_of(args.folder[0]):
        return transcribe.translate(args)
    glossary = _glossary(args)
    if args.file is not None:
        from heed.cli import documents

        return documents.run(args, chosen, glossary)
    if given := next((name for name in ("column", "format", "force") if getattr(args, name)), None):
        raise ValueError(f"--{given} is for documents: add --file")
    args.device = quick.device or args.device
    with quick_translate.remembered(folder) as note:
        translator = open_product(args, "translate")
        if args.text and args.input:
            raise ValueError("give either sentences or --input, not both")
        if "nbest" in chosen and not chosen.get("sample"):
            chosen.setdefault("beam", max(chosen["nbest"], translator.decoding.beam))
        if quick.searched is not None:
            translator.engines[0] = Continued(translator.engines[0], quick.searched)
        _translate(translator, chosen, args, glossary, quick.lines)
        if quick.searched is None:
            note(translator)
    return 0


def _translate(translator, chosen: dict, args: argparse.Namespace, glossary, lines=None) -> None:
    """All lines, or sentences, in chunks. `lines` are those of standard input if some have been read."""
    from heed.bulk import command
    from heed.cli.common import stream_lines
    from heed.data.staged import chunks
    from heed.products.translator.stages import chunk_size

    command.check_resume(args, bool(args.input))
    usual = chunk_size(translator, translator.search_config(chosen), CHUNK)
    size = command.chunk_size(args, usual, args.text or args.input)
    source = chunks(args.text or lines or stream_lines(args.input), size)
    stages = _stages(translator, chosen, args, glossary)

    def settings() -> dict:
        names = ("prefix", "too_long", "batch_tokens", "sentences", "scores", "token_scores", "align")
        given = {name: getattr(args, name) for name in names}
        given["languages"] = translator.facts.get("languages")
        terms = [sorted(glossary.terms.items()), sorted(glossary.keep)]
        search = {"engine": translator.engine(**chosen), "decoding": asdict(translator.search_config(chosen))}
        return command.settings_of(translator, **given, **search, glossary=terms, chunk=size)

    command.process(source, stages, args, settings, [args.input] if args.input else [])


def _stages(translator, chosen: dict, args: argparse.Namespace, glossary):
    """Tokenization, search and output lines. Anything that needs the model again runs with the search."""
    from heed.bulk.command import as_bytes
    from heed.data.staged import Stages, placed
    from heed.products.product import as_texts
    from heed.products.translator import stages

    if translator.bundle.undirected:
        translator = translator.toward()
    if args.sentences or args.align or args.token_scores:

        def translated(chunk) -> list[str]:
            with placed(chunk):
                return list(_translated(translator, chunk.items, chosen, args, glossary))

        return Stages(lambda chunk: chunk, translated, lambda chunk, lines: as_bytes(lines))
    config = translator.search_config(chosen)
    given = {"prefix": args.prefix, "too_long": args.too_long, "batch_tokens": args.batch_tokens}

    def finish(work, found) -> bytes:
        return as_bytes(_plain_lines(stages.finish(translator, work, found), args, config.nbest))

    return stages.searching(
        translator, lambda chunk: stages.prepare(translator, as_texts(chunk.items), config, glossary, **given), finish
    )


def _glossary(args: argparse.Namespace):
    """The terms of --glossary, which is a file or JSON, and of --keep."""
    from heed.text import glossary

    if args.glossary is None:
        return glossary.Glossary(keep=args.keep)
    if args.glossary.lstrip().startswith("{"):
        return glossary.parse(args.glossary, "--glossary", args.keep)
    return glossary.read(args.glossary, args.keep)


def _translated(translator, texts: list[str], chosen: dict, args: argparse.Namespace, glossary) -> Iterator[str]:
    """The output lines, one per hypothesis."""
    translations = translator.translate(
        texts, prefix=args.prefix, too_long=args.too_long, batch_tokens=args.batch_tokens, glossary=glossary,
        sentences=args.sentences, **chosen,
    )  # fmt: skip
    if not args.align:
        yield from _plain_lines(translations, args)
        return
    every = [_with_best(translation, k) for translation in translations for k in range(len(translation.nbest))]
    yield from _lines(translations, _alignments(translator, every, args.batch_tokens), args)


def _plain_lines(translations: list, args: argparse.Namespace, nbest: int | None = None) -> Iterator[str]:
    """The same without alignments. A translation says what the best of its `nbest` says."""
    _report_missing(translations)
    candidates = translations if nbest == 1 else [own for translation in translations for own in translation.nbest]
    if not (args.scores or args.token_scores):
        return (candidate.text for candidate in candidates)
    return (_line(candidate, None, args) for candidate in candidates)


def _lines(translations: list, links: list, args: argparse.Namespace) -> Iterator[str]:
    _report_missing(translations)
    candidates = [candidate for translation in translations for candidate in translation.nbest]
    for candidate, own in zip(candidates, links, strict=True):
        yield _line(candidate, own, args)


def _report_missing(translations: list) -> None:
    if any(translation.terms for translation in translations):
        from heed.cli.documents import report_missing

        report_missing([term for translation in translations for term in translation.missing])


def _with_best(translation, k: int):
    """A translation as if its k-th best were the best, part by part: the parts of a long text are aligned
    separately.
    """
    parts = [replace(part, text=part.nbest[min(k, len(part.nbest) - 1)].text) for part in translation.parts]
    return replace(translation, text=translation.nbest[k].text, parts=parts)


def _alignments(translator, translations: list, batch_tokens: int) -> list:
    """Word alignments; none if the re-encoded translation is too long for the model (a broken character becomes three
    bytes).
    """
    try:
        return translator.align(translations, batch_tokens)
    except ValueError:
        fits = [_fits(translator, one.parts or [one]) for one in translations]
        if all(fits):
            raise
    found = iter(translator.align([one for one, fit in zip(translations, fits, strict=True) if fit], batch_tokens))
    return [next(found) if fit else [] for fit in fits]


def _fits(translator, parts: list) -> bool:
    try:
        translator.encode_pairs([part.source for part in parts], [part.text for part in parts])
    except ValueError:
        return False
    return True


def _line(candidate, links, args: argparse.Namespace) -> str:
    cells = [f"{candidate.score:.4f}"] if args.scores else []
    cells.append(candidate.text)
    if args.token_scores:
        cells.append(" ".join(f"{t}:{s:.3f}" for t, s in zip(candidate.tokens, candidate.token_scores, strict=True)))
    if links is not None:
        from heed.evaluation.alignment import write

        cells.append(write(links))
    return "\t".join(cells)
