"""heed speak"""

import argparse
from pathlib import Path
from typing import Any

EXAMPLES = """\
examples:
  heed speak runs/voice "안녕하세요." --out hello.wav
  heed speak runs/voice "안녕하세요." --speaker f2 --out hello.wav --picture hello.png
  heed speak runs/voice --lines sentences.txt --out spoken             # a folder of recordings, with a table of path and text
  heed speak runs/voice "Hello." --vocoder hifigan --out hello.wav     # sound by a HiFi-GAN instead of Griffin-Lim
  heed train recipes/voice.toml --set data.audio=corpus/manifest.tsv --out runs/voice
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device

    option = parser.add_argument
    option("folder", help="a run or a model folder")
    option("text", nargs="?", help="the text to speak")
    option("--lines", metavar="FILE", help="speak each line of a file")
    option("--out", type=Path, required=True, metavar="FILE", help="a WAV file; with --lines, a folder")
    option("--speaker", help="the speaker (default: the first one)")
    option("--picture", type=Path, metavar="FILE", help="draw the spectrogram and the attention (.png)")
    add_vocoder(parser)
    add_g2p(parser)
    add_device(parser)


def add_g2p(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--g2p", metavar="FOLDER", help="a model that pronounces words missing from the dictionary (recipes/g2p.toml)"
    )


def add_vocoder(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--vocoder",
        metavar="PATH",
        help="a HiFi-GAN vocoder: a folder, or a .safetensors file next to its config.json",
    )


def equip(voice: Any, args: argparse.Namespace) -> None:
    """Give a voice the requested vocoder and pronunciation model."""
    if args.g2p:
        from heed.products.pronunciation import open_model

        voice.use_g2p(open_model(args.g2p, args.device), args.g2p)
    if getattr(args, "vocoder", None):
        from heed.products.vocoder import Vocoder

        voice.use_vocoder(Vocoder.open(args.vocoder))


def run(args: argparse.Namespace) -> int:
    from heed.audio.files import write_wav
    from heed.cli.common import errors, read_lines

    if (args.text is None) == (args.lines is None):
        raise ValueError("nothing to speak: give a text, or --lines FILE")
    if args.lines and args.picture:
        raise ValueError("--picture is for one text: leave out --lines")
    voice = _voice(args, args.folder)
    if args.lines:
        return _speak_lines(args, voice, [line for line in read_lines(args.lines) if line.strip()])
    (found,) = voice.speak([args.text], args.speaker)
    write_wav(args.out, found.sound.samples, found.sound.rate)
    if args.picture:
        _draw(args, voice, found)
    if not found.ended:
        errors().print("[yellow]The model never predicted the end: the audio is truncated.[/]", highlight=False)
    print(f"{args.out}: {found.sound.seconds:.2f} seconds")
    return 0


def _voice(args: argparse.Namespace, folder: str) -> Any:
    from heed.cli.common import open_product

    voice = open_product(args, "speak", [folder])
    equip(voice, args)
    return voice


def _speak_lines(args: argparse.Namespace, voice: Any, texts: list[str]) -> int:
    from heed.audio.files import wav_bytes
    from heed.cli.common import errors
    from heed.files import atomic_folder

    if not texts:
        raise ValueError(f"{args.lines}: it contains nothing to speak")
    found = voice.speak(texts, args.speaker)
    with atomic_folder(args.out) as part:
        (part / "wavs").mkdir()
        rows = []
        for number, own in enumerate(found, 1):
            (part / "wavs" / f"{number:06}.wav").write_bytes(wav_bytes(own.sound.samples, own.sound.rate))
            rows.append(f"wavs/{number:06}.wav\t{' '.join(own.text.split())}\n")
        (part / "manifest.tsv").write_text("".join(rows), encoding="utf-8", newline="\n")
    cut = sum(not own.ended for own in found)
    if cut:
        errors().print(
            f"[yellow]The model never predicted the end of {cut:,} of {len(found):,} texts.[/]", highlight=False
        )
    print(f"{len(found):,} recordings in {args.out}: {args.out / 'manifest.tsv'}")
    return 0


def _draw(args: argparse.Namespace, voice: Any, found: Any) -> None:
    from heed.lab.spectrogram import draw_speech

    attention = voice.attention(found.text, found.frames, args.speaker)
    pieces = voice.vocabulary.pieces(voice.encode([found.text])[0])
    draw_speech(args.picture, found.frames, voice.sound.seconds, attention, [*pieces, "</s>"], found.text)


def evaluate(args: argparse.Namespace) -> int:
    """`heed evaluate` for voices: synthesize texts and compare them with their recordings."""
    import numpy as np
    from rich.console import Console

    from heed.data.audio import manifests
    from heed.data.audio.prepare import computed
    from heed.evaluation.voice import distortion

    if not args.audio:
        raise ValueError(f"{args.system} is a text-to-speech model: give recordings with their texts, --audio FILE")
    utterances = [own for name in args.audio for own in manifests.read(name, split=args.split)]
    voice = _voice(args, args.system)
    scale, mean = (np.asarray(own, dtype=np.float32) for own in (voice.sound.deviation, voice.sound.mean))
    ids = voice.encode([own.text for own in utterances])
    speakers = [voice.speaker_number(own.speaker or None) for own in utterances]
    made, ended = [], []
    for start in range(0, len(ids), 64):
        found = voice.frames(ids[start : start + 64], speakers[start : start + 64])
        made, ended = made + found[0], ended + found[1]
    recorded = [computed(own, voice.sound)[0] for own in utterances]
    distances = [distortion(own * scale + mean, other) for own, other in zip(made, recorded, strict=True)]
    drawn = np.random.default_rng(0).choice(distances, (args.samples, len(distances))).mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    length = sum(map(len, made)) / sum(map(len, recorded))
    console = Console()
    console.print(f"MCD  [bold]{np.mean(distances):.2f}[/] dB  ({low:.2f} to {high:.2f})", highlight=False)
    console.print(
        f"[dim]{len(made):,} texts; the model predicted the end of {100 * np.mean(ended):.1f} % of them; {length:.3f} times the "
        "recorded duration; 95 % interval, bootstrapped over texts[/]",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
    if args.json:
        from heed.files import write_json

        interval = [float(low), float(high)]
        facts = {
            "mcd": float(np.mean(distances)),
            "interval": interval,
            "ended": float(np.mean(ended)),
            "length": length,
        }
        write_json(args.json, {"system": args.system, "scores": facts, "texts": len(made)})
    return 0
