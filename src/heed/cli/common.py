"""Shared by several verbs: options, models, input and output lines."""

import argparse
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", help="auto (a GPU if available), cpu, cuda, cuda:1")
    parser.add_argument("--threads", type=_threads, help="number of CPU threads (default: all cores)")


def _threads(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"it is {text}; it must be an integer, at least 1 and at most 1,024")
    return int(text)


def add_batches(parser: argparse.ArgumentParser, too_long: list[str], what: str) -> None:
    line = f"how to handle {what} too long for the model"
    parser.add_argument("--too-long", choices=too_long, default=too_long[0], help=line)
    parser.add_argument("--batch-tokens", type=int, default=4096, help="maximum number of subwords per batch")


def add_max_pixels(parser: argparse.ArgumentParser) -> None:
    line = "for image models: images with more pixels are not decoded and count as unreadable (default: 50,000,000)"
    parser.add_argument("--max-pixels", type=int, default=50_000_000, metavar="N", help=line)


def add_precision(parser: argparse.ArgumentParser) -> None:
    line = "auto (default): bfloat16 for an encoder on a GPU that supports it, else float32"
    parser.add_argument("--precision", choices=["auto", "float32", "bfloat16"], default="auto", help=line)


def add_engine(parser: argparse.ArgumentParser, default: str = "auto") -> None:
    line = f"decoding engine; auto is ctranslate2 where supported, else torch (default: {default}; docs/internals/speed.md)"
    parser.add_argument("--engine", choices=["auto", "torch", "ctranslate2"], default=default, help=line)


def add_text_engine(parser: argparse.ArgumentParser, searches: bool = False) -> None:
    """`searches`: the command generates text, and does not only score it."""
    own = "; on a CPU, GPT, GPT-2 and CTRL generate in C code (native: Linux with a C compiler), large models with 8-bit weights (int8: a CPU with AVX-512 VNNI)" if searches else ""  # fmt: skip
    line = f"inference engine: auto (the default) is torch, on an NVIDIA GPU with CUDA graphs in bfloat16{own}; for GPT-2 on the CPU, ctranslate2 where supported: --greedy, and scores"
    choices = ["auto", "torch", *(["native", "int8"] if searches else []), "ctranslate2"]
    parser.add_argument("--engine", choices=choices, default="auto", help=line)


def add_encoder_engine(parser: argparse.ArgumentParser, classifies: bool = False) -> None:
    """`classifies`: the command tells classes, of images too."""
    own = ", fp8 on NVIDIA GPUs since Hopper (compute capability 9.0)" if classifies else ""
    line = f"inference engine for BERT, RoBERTa or ELECTRA on the CPU: auto (the default) is ctranslate2 in float32 for many texts, else torch; ctranslate2-int8 is faster and quantized (docs/guides/encoders.md). For images: auto is int8 on CPUs with AVX-512 VNNI{own}, else torch (docs/guides/images.md)"
    choices = ["auto", "torch", "ctranslate2", "ctranslate2-int8", "int8", *(["fp8"] if classifies else [])]
    parser.add_argument("--engine", choices=choices, default="auto", help=line)


def add_direction(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "translation direction, for a multilingual model (ko, pt-BR, Korean, or the model's own codes)"
    )
    group.add_argument("--from", dest="from_language", metavar="LANGUAGE", help="the language of the texts")
    group.add_argument("--to", dest="to_language", metavar="LANGUAGE", help="the language to translate into")


def add_reranking(parser: argparse._ActionsContainer) -> None:
    """DecodingConfig options beyond the beam; they are in `RERANKING`."""
    option = parser.add_argument
    option(
        "--rerank",
        choices=["none", "mbr"],
        help="mbr: the candidate most similar to all the others (docs/guides/search.md)",
    )
    option(
        "--candidates", type=int, metavar="N", help="number of candidates of each kind for --rerank mbr (default: 16)"
    )
    option(
        "--candidates-from", choices=["beam", "samples", "both"], help="how candidates are generated (default: beam)"
    )
    option("--utility", choices=["bleu", "chrf"], help="similarity metric (default: bleu)")
    add_guards(parser)


def add_guards(parser: argparse._ActionsContainer, names: Sequence[str] = ("loops", "overlong", "copies")) -> None:
    """Guards of a search, each with its opposite; they are in `GUARDS`."""
    faults = {
        "loops": "repeats itself",
        "overlong": "is far longer than its source",
        "copies": "copies its source",
    }
    for name in names:
        line = f"decode again where an output {faults[name]} (the default of models that Heed trained)"
        parser.add_argument(f"--avoid-{name}", action="store_true", default=None, help=line)
        line = f"keep an output that {faults[name]}"
        parser.add_argument(f"--allow-{name}", dest=f"avoid_{name}", action="store_false", default=None, help=line)


GUARDS = ("avoid_loops", "avoid_overlong", "avoid_copies")
RERANKING = ("rerank", "candidates", "candidates_from", "utility", *GUARDS)


def split_names(text: str) -> list[str]:
    """The folders of an ensemble, separated by commas."""
    return text.split(",")


def open_product(args: argparse.Namespace, verb: str, folders: list[str] | None = None):
    """Open the translator, generator, classifier or summarizer in the folders; refuses one without this verb."""
    import torch

    from heed.loading import load

    if args.threads:
        torch.set_num_threads(args.threads)
    product = load(folders or args.folder, args.device, getattr(args, "engine", "auto"), verb)
    languages = [getattr(args, name, None) for name in ("from_language", "to_language")]
    if "translate" in product.verbs:
        return product.toward(*languages)
    if any(languages):
        raise ValueError(f"--from and --to are for translation models, and this is {product.noun}: leave them out")
    return product


def product_of_model(name: str, verb: str | None = None):
    """What a folder or a name on the hub holds, without opening it; None for a name that is neither."""
    if Path(name).is_file():
        return None  # which is known without importing torch
    from heed.loading import may_be_model, product_of

    return product_of(name, verb) if may_be_model(name) else None


def verbs_of(name: str) -> tuple[str, ...]:
    """The verbs of what such a name holds; none for a name that is neither."""
    return getattr(product_of_model(name), "verbs", ())


def check_product(args: argparse.Namespace, folders: list[str], verb: str, options: str) -> None:
    """Refuse folders without `verb`. `options`: what the command line offers instead, for folders that support it."""
    for name in folders:
        if (product := product_of_model(name)) is None or verb in product.verbs:
            continue
        hint = f" (heed {args.verb} with {options})" if args.verb in product.verbs else ""
        raise ValueError(product.refusal(name, verb) + hint)


def model_shape(config) -> str:
    """The size of a model in a few words, for a caption."""
    if not hasattr(config, "encoder_layers"):
        kind = f"{config.heads} heads" if hasattr(config, "heads") else config.cell
        return f"{kind}, {config.layers} layers of {config.hidden}"
    kind = f"{config.heads} heads" if hasattr(config, "heads") else f"{config.cell} · attention {config.attention}"
    return f"{config.encoder_layers}+{config.decoder_layers} layers · {kind}"


def read_lines(path: str | None) -> list[str]:
    """The lines of a file, or of standard input."""
    return list(input_lines(path))


def stream_lines(path: str | None) -> Iterator[str]:
    """The same, one at a time. A file is read once in advance, so that errors appear before any output."""
    if path not in (None, "-"):
        for _ in input_lines(path):
            pass
    yield from input_lines(path)


def input_lines(path: str | None) -> Iterator[str]:
    """The same, without reading a file in advance."""
    if path is None or path == "-":
        return (_decode(raw, number) for number, raw in enumerate(sys.stdin.buffer, 1))
    from heed.data.readers import lines

    return lines(Path(path))


def _decode(raw: bytes, number: int) -> str:
    try:
        return raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(
            f"standard input, line {number} is not UTF-8: convert it first, for example with iconv"
        ) from None


def write_lines(lines: Iterable[str], out: str | None) -> None:
    """Write to a file atomically, or to standard output; always as UTF-8."""
    write_chunks([lines], out)


def write_chunks(chunks: Iterable[Iterable[str]], out: str | None) -> None:
    """The same, flushing each chunk before the next one is computed."""
    if out is None:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")
        _write(chunks, sys.stdout)
        return
    from heed.files import atomic_file

    path = Path(out)
    if path.is_dir():
        raise ValueError(f"--out {out} is a folder: give the name of a file")
    if path.exists() and not path.is_file():  # a pipe or a device cannot be replaced by a file
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            _write(chunks, file)
        return
    chunks = iter(chunks)
    first = [list(chunk) for chunk in islice(chunks, 1)]  # errors of the first chunk come before there is a file
    with atomic_file(path) as part, open(part, "w", encoding="utf-8", newline="\n") as file:
        _write(chain(first, chunks), file)


def _write(chunks: Iterable[Iterable[str]], file: io.TextIOBase) -> None:
    for chunk in chunks:
        file.writelines(line + "\n" for line in chunk)
        file.flush()


def warn_on(console):
    """A function that prints a sentence about damaged files, even on a quiet console."""

    def warn(sentence: str) -> None:
        quiet, console.quiet = console.quiet, False
        console.print(sentence, highlight=False, markup=False, soft_wrap=True)
        console.quiet = quiet

    return warn


def errors():
    """A console on standard error, for everything but the result."""
    from rich.console import Console

    return Console(stderr=True)
