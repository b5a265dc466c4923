"""The spoken phrasebook: `python -m bench.spoken --out runs/spoken`. It needs espeak-ng.

espeak-ng reads lines of the phrasebook aloud, in twelve voices and at four speeds. On them are trained: recognizers of Korean and
English, a model from Korean speech to English text, a voice, and a translator of text. All are scored on unseen lines at an
unseen speed; what the voice says is transcribed by the recognizer. What is done already is not done again.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from bench.jobs import HEED, Job, Jobs, train

SPEED = 152  # words per minute of the test recordings; no training recording has it
HELD = 300  # lines to validate on, and lines to test on


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m bench.spoken", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--out", type=Path, default=Path("runs/spoken"))
    top.add_argument("--lines", type=int, default=16_000, help="that are read aloud for training (default: 16,000)")
    top.add_argument("--time", default="20m", help="of each training (default: 20m)")
    top.add_argument("--only", nargs="+", choices=[*TRAININGS, "text"], help="some of the models (default: all)")
    top.add_argument("--parts", type=int, default=12, help="processes that write recordings (default: 12)")
    top.add_argument("--at-once", type=int, default=5, help="trainings at the same time (default: 5)")
    top.add_argument("--set", dest="settings", action="append", default=[], help="a setting of all trainings on speech")
    top.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long; the same command goes on")
    return top


TRAININGS = {  # recipe, language, table
    "speech-ko": ("speech-phrasebook", "ko", "manifest.tsv"),
    "speech-en": ("speech-phrasebook", "en", "manifest.tsv"),
    "speech-ko-en": ("speech-translation", "ko", "translation.tsv"),
    "voice-ko": ("voice", "ko", "manifest.tsv"),
}


STARTS = {"speech-ko-en": ("speech-ko",)}  # the model that a training starts from


def write_texts(out: Path, lines: int, parts: int) -> None:
    """The phrasebook, and what is to be read aloud: in parts, so that several processes can do it."""
    if (out / "texts" / "done").exists():
        return
    held = ["--valid", str(HELD), "--test", str(HELD)]
    book = str(out / "phrasebook")
    subprocess.run([*HEED, "phrasebook", "--grammar", "--out", book, "--train", str(lines), *held], check=True)
    (out / "texts").mkdir(exist_ok=True)
    for name in ("train", "valid", "test"):
        ko, en = ((out / "phrasebook" / f"{name}.{side}").read_text("utf-8").splitlines() for side in ("ko", "en"))
        count = parts if name == "train" else 1
        for language, spoken, written in (("ko", ko, en), ("en", en, en)):
            rows = [f"{one}\t{other}\n" for one, other in zip(spoken, written, strict=True)]
            for part in range(count):
                path = out / "texts" / f"{language}-{name}-{part}.tsv"
                path.write_text("".join(rows[part::count]), encoding="utf-8", newline="\n")
    (out / "texts" / "done").touch()


def recordings(out: Path, language: str, parts: int) -> list[Job]:
    """Jobs that read aloud; the test at its own speed."""
    names = [*(f"{language}-train-{part}" for part in range(parts)), f"{language}-valid-0", f"{language}-test-0"]
    return [
        Job(
            f"speak-{name}",
            (
                *(*HEED, "speak-corpus", str(out / "texts" / f"{name}.tsv"), "--language", language),
                *("--seed", name.rsplit("-", 1)[1], "--out", str(out / name)),
                *(("--speeds", str(SPEED)) if "test" in name else ()),
            ),
            share=0,
        )
        for name in names
    ]


def jobs(options: argparse.Namespace) -> list[Job]:
    out, wanted = options.out, list(options.only or [*TRAININGS, "text"])
    wanted += [first for name in wanted for first in STARTS.get(name, ()) if first not in wanted]
    found, share = [], 1 / options.at_once
    languages = {TRAININGS[name][1] for name in wanted if name != "text"}
    spoken = {language: recordings(out, language, options.parts) for language in ("ko", "en") if language in languages}
    found += [job for own in spoken.values() for job in own]
    for name in wanted:
        if name == "text":
            found.append(Job(name, train_text(out), share=share))
            continue
        recipe, language, table = TRAININGS[name]
        after = tuple(job.name for job in spoken[language]) + STARTS.get(name, ())
        files = json.dumps([str(out / f"{language}-train-{part}" / table) for part in range(options.parts)])
        valid = json.dumps([str(out / f"{language}-valid-0" / table)])
        settings = [f"data.audio={files}", f"data.valid_audio={valid}", f"data.language={language}", *options.settings]
        settings += [f"model.folder={out / first}" for first in STARTS.get(name, ())]
        command = train(name, f"recipes/{recipe}.toml", out, settings, ("--time", options.time))
        found.append(Job(name, command, after, share=share))
        test = str(out / f"{language}-test-0" / table)
        score = (*HEED, "evaluate", str(out / name), "--audio", test, "--json", str(out / f"{name}.json"))
        found.append(Job(f"score-{name}", score, (name,), share=share))
    return found + cascade(out, share, wanted) + listening(out, share, wanted)


def train_text(out: Path) -> tuple[str, ...]:
    """The command that trains the translator of text, on the lines that are read aloud to the others."""
    book = out / "phrasebook"
    files = [
        part
        for option, name in (("", "train"), ("valid-", "valid"))
        for side, code in (("source", "ko"), ("target", "en"))
        for part in (f"--{option}{side}", f"{book}/{name}.{code}")
    ]
    return train("text", "recipes/road-transformer.toml", out, ["training.steps=4000"], files)


def cascade(out: Path, share: float, wanted: list[str]) -> list[Job]:
    """Transcribe, then translate the transcripts."""
    if not {"speech-ko", "text"} <= set(wanted):
        return []
    said, english = out / "transcripts.ko", out / "transcripts.en"
    wavs = f'"{out}"/ko-test-0/wavs/*.wav'
    heed = " ".join(HEED)
    hear = f'{heed} transcribe "{out}/speech-ko" {wavs} --format text --out "{said}"'
    command = (
        f'{hear} && cut -f2 "{said}" | {heed} translate "{out}/text" > "{english}" && '
        f'{heed} evaluate "{out}/text" --source "{out}/phrasebook/test.ko" --reference "{out}/phrasebook/test.en" --json "{out}/text.json" && '
        f'{sys.executable} -c "import sacrebleu, sys; print(sacrebleu.corpus_bleu(open(sys.argv[1]).read().splitlines(), [open(sys.argv[2]).read().splitlines()]))" "{english}" "{out}/phrasebook/test.en"'
    )
    return [Job("cascade", ("bash", "-c", command), ("speech-ko", "text"), share=share)]


def listening(out: Path, share: float, wanted: list[str]) -> list[Job]:
    """What the voice says in 100 lines, transcribed; and the same lines of espeak-ng."""
    if not {"speech-ko", "voice-ko"} <= set(wanted):
        return []
    heed, voice = " ".join(HEED), out / "voice-ko"
    lines = f'head -100 "{out}/phrasebook/test.ko" > "{out}/100.ko"; head -100 "{out}/ko-test-0/manifest.tsv" > "{out}/ko-test-0/100.tsv"'
    command = (
        f'{lines}; {heed} speak "{voice}" --lines "{out}/100.ko" --out "{out}/said" && '
        f'{heed} speak "{voice}" "$(sed -n 2p "{out}/100.ko")" --out "{out}/sample.wav" --picture "{out}/sample.png" && '
        f'{heed} evaluate "{out}/speech-ko" --audio "{out}/said/manifest.tsv" --json "{out}/said.json" && '
        f'{heed} evaluate "{out}/speech-ko" --audio "{out}/ko-test-0/100.tsv" --json "{out}/original.json"'
    )
    return [Job("listening", ("bash", "-c", command), ("speech-ko", "voice-ko"), share=share)]


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    write_texts(options.out, options.lines, options.parts)
    done = Jobs(jobs(options), options.out, at_once=options.parts + options.at_once).run(options.seconds)
    for path in sorted(options.out.glob("*.json")):
        print(path.stem, path.read_text("utf-8")[:2000])
    return 0 if done else 1


if __name__ == "__main__":
    raise SystemExit(main())
