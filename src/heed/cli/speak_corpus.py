"""heed speak-corpus"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed speak-corpus text.tsv --out corpus                       # English, twelve voices, four speeds
  heed speak-corpus train.ko --language ko --each 2 --out corpus-ko
  heed speak-corpus test.ko --language ko --voices m1,f2 --speeds 190 --out corpus-test
  heed train recipes/speech-phrasebook.toml --set data.audio=corpus/manifest.tsv --out runs/speech

Each line is read aloud by espeak-ng. A line may have a tab: the spoken text before it, and the text to write, such as
a translation, after it. Writes wavs/, manifest.tsv with the spoken texts and, where they differ, translation.tsv with
the texts to write, and the spoken texts as transcripts. Lines with chat spellings (ㅋㅋ, ㅠㅠ, ~, ^^), which espeak-ng
would spell out, are left out and counted.
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.data.synthetic.spoken import SPEEDS, VOICES

    option = parser.add_argument
    option("text", type=Path, metavar="FILE", help="lines to read aloud; after a tab, the text to write")
    option("--out", type=Path, required=True, metavar="FOLDER", help="where to write the recordings")
    option("--language", default="en", help="an espeak-ng language: en, en-us, ko (default: en)")
    option("--voices", default=",".join(VOICES), metavar="A,B", help="variants of the voice (default: %(default)s)")
    speeds = ",".join(map(str, SPEEDS))
    option("--speeds", default=speeds, metavar="N,N", help="words per minute (default: %(default)s)")
    option("--each", type=int, default=1, help="number of different recordings per line (default: 1)")
    option("--rate", type=int, default=16_000, help="sample rate in Hz (default: 16000)")
    option("--seed", type=int, default=0, help="random seed; the same seed gives the same recordings")


def run(args: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import track

    from heed.cli.common import errors
    from heed.data.synthetic.spoken import SPELLINGS, Speaking, lines_of, speak

    speeds = args.speeds.split(",")
    if not all(speed.strip().isdecimal() for speed in speeds):
        raise ValueError(f"--speeds is {args.speeds}; give integers separated by commas")
    voices = tuple(voice.strip() for voice in args.voices.split(","))
    how = Speaking(args.language, voices, tuple(map(int, speeds)), args.each, args.rate, args.seed)
    lines, left_out = lines_of(args.text)
    bar = iter(track(range(len(lines) * args.each), "speaking", console=Console(stderr=True), transient=True))
    count = speak(lines, how, args.out, lambda done: next(bar, None))
    print(f"{count:,} recordings in {args.out}: {args.out / 'manifest.tsv'}")
    if left_out:
        errors().print(f"[dim]{left_out:,} lines with {SPELLINGS} were left out.[/]", highlight=False, soft_wrap=True)
    return 0
