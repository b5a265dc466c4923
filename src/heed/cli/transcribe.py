"""heed transcribe"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

EXAMPLES = """\
examples:
  heed transcribe runs/speech talk.wav                      # the text
  heed transcribe runs/speech *.flac --format json          # one line of JSON per file, with word timings
  heed transcribe runs/speech talk.ogg --format srt --out talk.srt
  heed transcribe runs/speech talk.wav --beam 1 --ctc-weight 1       # fast: CTC only
  heed transcribe runs/speech talk.wav --lm runs/characters --lm-weight 0.5
  heed train recipes/speech-fsdd.toml --set data.audio=recordings --out runs/fsdd
"""
CHUNK = 32  # files that are read at one time


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device

    option = parser.add_argument
    option("folder", help="a run or a model folder")
    option("files", nargs="+", metavar="FILE", help="recordings: WAV; with soundfile also FLAC, Ogg and MP3")
    option(
        "--format",
        choices=["text", "json", "srt", "vtt"],
        default="text",
        help="text, JSON lines with timings, or subtitles",
    )
    add_search(parser)
    option("--out", metavar="FILE", help="write to a file")
    add_device(parser)


def add_search(parser: argparse.ArgumentParser) -> None:
    """Options of speech decoding."""
    option = parser.add_argument_group("speech").add_argument
    option("--ctc-weight", type=float, help="weight of CTC in the score: 0 is attention only, 1 is CTC only")
    option("--lm", metavar="FOLDER", help="a language model for shallow fusion")
    option("--lm-weight", type=float, help="weight of the language model")
    option("--segment", type=float, metavar="SECONDS", help="long recordings are read in windows of this length")
    if not any(action.dest == "beam" for action in parser._actions):
        option("--beam", type=int, help="beam size; 1 is greedy search")


def search_options(args: argparse.Namespace) -> dict[str, Any]:
    names = {
        "beam": "beam",
        "ctc_weight": "ctc_weight",
        "lm_weight": "lm_weight",
        "window": "segment",
    }
    return {name: value for name, own in names.items() if (value := getattr(args, own, None)) is not None}


def open_language(args: argparse.Namespace, recognizer: Any) -> Any:
    """The language model given by --lm for this recognizer; None without one."""
    from heed.loading import load
    from heed.products.speech_language import language_scores

    if args.lm is None:
        return None
    return language_scores(load(args.lm, args.device, "torch", "generate"), recognizer.vocabulary, args.lm)


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import open_product

    if args.format in ("srt", "vtt") and len(args.files) > 1:
        raise ValueError(f"--format {args.format} is for a single recording: call heed transcribe once per recording")
    recognizer = open_product(args, "transcribe")
    return _write(args, recognizer, args.files, open_language(args, recognizer))


def translate(args: argparse.Namespace) -> int:
    """`heed translate` for speech models: its arguments are audio files."""
    from heed.cli.common import open_product

    recognizer = open_product(args, "transcribe")
    if not recognizer.translates:
        raise ValueError(f"{args.folder[0]} transcribes in the spoken language: use heed transcribe")
    names = args.text or [name for name in (args.input, args.file) if name]
    if not names:
        raise ValueError("give the recordings to translate: heed translate MODEL talk.wav")
    args.format = "text"
    return _write(args, recognizer, names, None)


def _write(args: argparse.Namespace, recognizer: Any, names: list[str], language: Any) -> int:
    from heed.cli.common import errors, write_chunks

    refused: list[str] = []
    several = len(names) > 1

    def chunks() -> Iterator[list[str]]:
        for start in range(0, len(names), CHUNK):
            kept, found = _transcribed(args, recognizer, language, names[start : start + CHUNK], refused)
            yield _lines(args.format, kept, found, several)

    write_chunks(chunks(), args.out)
    for sentence in refused:
        errors().print(f"heed: {sentence}", highlight=False, markup=False, soft_wrap=True)
    return 1 if refused else 0


def _transcribed(
    args: argparse.Namespace, recognizer: Any, language: Any, names: list[str], refused: list[str]
) -> tuple[list[str], list[Any]]:
    """The readable recordings and their transcripts; the others are skipped."""
    from heed.audio import files

    sounds, kept = [], []
    for name in names:
        try:
            sounds.append(files.read(name))
            kept.append(name)
        except (ValueError, OSError) as error:
            refused.append(str(error))
    return kept, recognizer.transcribe(sounds, language=language, **search_options(args))


def _lines(form: str, names: list[str], found: list[Any], several: bool) -> list[str]:
    from heed.products.subtitles import subrip, web_vtt

    if form in ("srt", "vtt"):
        return [line for own in found for line in (subrip if form == "srt" else web_vtt)(own).splitlines()]
    pairs = list(zip(names, found, strict=True))
    if form == "json":
        return [json.dumps({"file": name, **asdict(own)}, ensure_ascii=False) for name, own in pairs]
    return [f"{Path(name).name}\t{own.text}" if several else own.text for name, own in pairs]
