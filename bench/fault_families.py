"""Scenes of the families that prepare data of their own kinds: images, recordings, logs of a shop, tags, questions, languages."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from bench.fault_scene import CACHE, MODEL, RESULT, RUN, SHAPE, SMALL, Probe, Scene, resumed, train
from heed.audio.files import write_wav
from heed.data.synthetic import phrasebook, shop

IMAGES = {**SMALL, **SHAPE, "data.images": "data/images", "data.valid_images": "data/seen", "model.layers": 1, "training.ema": 0.9, "training.final": "ema"}  # fmt: skip
VIT = {**IMAGES, "task.name": "image-classification", "model.name": "vit", "task.flip": "true", "model.patch": 4}
DRAWING = {**IMAGES, "task.name": "image-generation", "model.name": "image-transformer", "task.by_class": "true"}
AUDIO = {
    **SMALL, **SHAPE, "data.audio": "data/said.tsv", "data.valid_audio": "data/heard.tsv", "data.rate": 8000, "data.mels": 8,
    "model.encoder_layers": 1, "model.decoder_layers": 1,
}  # fmt: skip
HEARING = {
    **AUDIO, "task.name": "speech-recognition", "task.ctc": 0.3, "model.name": "speech-transformer", "model.channels": 4, "model.subsampling": 2,
    "data.speeds": "[0.9,1.0]", "subwords.kind": "characters", "decoding.beam": 1,
}  # fmt: skip
VOICE = {
    **AUDIO, "task.name": "speech-synthesis", "model.name": "transformer-tts", "model.reduction": 4, "data.phonemes": "data/words.dict",
    "data.frame": 32, "data.shift": 16,
}  # fmt: skip
SHOP = {
    **SMALL, **SHAPE, "data.interactions": "data/log.csv", "task.name": "recommendation", "model.name": "sasrec",
    "model.layers": 1, "model.max_length": 8, "data.core": 2,
}  # fmt: skip
BERT = {**SMALL, **SHAPE, "model.name": "bert", "model.layers": 1, "model.max_length": 32, "subwords.size": 150}
TAGGING = {**BERT, "task.name": "tagging", "data.train": "data/train.conll", "data.valid": "data/valid.conll"}
ANSWERS = {**BERT, "task.name": "question-answering", "task.max_question": 8, "task.stride": 8, "data.train": "data/train.json", "data.valid": "data/valid.json"}  # fmt: skip
LANGUAGES = {
    **SMALL, **SHAPE, "model.encoder_layers": 1, "model.decoder_layers": 1, "subwords.size": 700, "filters.max_length": 40,
    "decoding.max_length": 8,
}  # fmt: skip
SPOKEN = ("one two", "two", "one", "two one", "one one", "two two")
NAMES = ("Ann", "Bo", "Kim", "Lee")
CACHED = (*MODEL, *CACHE)
OWN = (*CACHE, *MODEL, "run/checkpoints/*/state.json")  # the other files are of the same kinds in all runs
PLACES = ("Seoul", "Bonn", "Rome", "New York")


def _probe(command: str, *outputs: str, files: tuple[str, ...] = MODEL) -> Probe:
    """One command, called by its verb. `files` are those that are damaged."""
    return Probe(command.split()[0], (command,), outputs, files)


def _scene(
    name: str, settings: dict, other: dict, *probes: Probe, recipe: str = "", files: tuple[str, ...] = OWN
) -> Scene:
    """A training and its next commands; beside it another seed of it, and a run of other data."""
    others = train(settings, recipe, 2), train({**settings, **other}, recipe, run="else")
    return Scene(name, (train(settings, recipe),), (resumed(5, files), *probes), others)


def _of_images() -> list[Scene]:
    other, files = {"data.images": "data/others"}, (*RUN, *CACHE)
    classifier = _scene(
        "image classifier", VIT, other,
        _probe("classify run data/seen"),
        _probe("embed run data/seen --out vectors.npy", "vectors.npy"),
        _probe("evaluate run --images data/seen", files=CACHED),
        files=files,
    )  # fmt: skip
    generator = _scene(
        "image generator", DRAWING, other,
        _probe("generate run --class dots --count 2 --seed 3 --out drawn.png", "drawn.png"),
        _probe("evaluate run --images data/seen"),
        files=files,
    )  # fmt: skip
    return [classifier, generator]


def _of_recordings() -> list[Scene]:
    other, evaluate = {"data.audio": "data/more.tsv"}, _probe("evaluate run --audio data/heard.tsv", files=CACHED)
    transcribe = _probe("transcribe run data/0.wav data/1.wav --format json")
    speak = _probe("speak run one --out said.wav", "said.wav")
    return [
        _scene("speech recognizer", HEARING, other, transcribe, evaluate),
        _scene("voice", VOICE, other, speak, evaluate),
    ]


def _recommender() -> Scene:
    return _scene(
        "recommender", SHOP, {"data.interactions": "data/other.csv"},
        _probe("recommend run --user 3 --n 3 --exclude-seen"),
        _probe("evaluate run --at 5 --samples 20", files=CACHED),
    )  # fmt: skip


def _tagger() -> Scene:
    return _scene(
        "tagger", TAGGING, {"data.train": "data/more.conll"},
        _probe("tag run --input data/test.en --format json"),
        _probe("evaluate run --conll data/valid.conll --samples 20"),
    )  # fmt: skip


def _tagged_file() -> Scene:
    """A file of which a part is tagged."""
    command = "tag run --input data/mono.en --format table --out tags.tsv"
    probe = Probe("tag --resume", (f"{command} --resume",), ("tags.tsv",), ("tags.tsv.part*",))
    made, others = (train(TAGGING, "", seed) for seed in (1, 2))
    return Scene("tagged file", (made, command), (probe,), (others, command), kill="tags.tsv.part")


def _answerer() -> Scene:
    return _scene(
        "question answering", ANSWERS, {"data.train": "data/more.json"},
        _probe("answer run --context data/context.txt Who? Where? --json"),
        _probe("evaluate run --squad data/valid.json --samples 20"),
    )  # fmt: skip


def _multilingual() -> Scene:
    return _scene(
        "multilingual", LANGUAGES, {"filters.max_length": 20},
        _probe("translate run --from ko --to en --input data/test.ko", files=CACHED),
        _probe("evaluate run --from en --to ko --source data/test.en --reference data/test.ko"),
        recipe="data/languages.toml",
    )  # fmt: skip


def scenes() -> list[Scene]:
    return [
        *_of_images(), *_of_recordings(), _recommender(), _tagger(), _tagged_file(), _answerer(), _multilingual(),
    ]  # fmt: skip


def trainings() -> dict[str, tuple[str, Sequence[str]]]:
    """Trainings that are stopped at every write, mainly for those of their preparation."""
    short = {"training.steps": 1, "training.valid_every": 1}
    made = {"images": VIT, "drawings": DRAWING, "recordings": HEARING, "voice": VOICE, "log": SHOP, "tags": TAGGING}
    return {f"training of {name}": (train({**settings, **short}, ""), RESULT) for name, settings in made.items()}


def write_data(folder: Path) -> None:
    _write_images(folder / "images", 12)
    _write_images(folder / "others", 10)
    _write_images(folder / "seen", 3)
    _write_recordings(folder)
    for name, count in (("log", 40), ("other", 30)):
        shop.write(folder / f"{name}.csv", count)
    for name, count in (("train", 24), ("more", 20), ("valid", 4)):
        _write(folder / f"{name}.conll", "".join(map(_tagged, range(count))))
        _write(folder / f"{name}.json", json.dumps({"data": [{"paragraphs": list(map(_asked, range(count)))}]}))
    _write(folder / "context.txt", _said(2) + " " + _said(5))
    _write(folder / "mono.en", "".join(f"{pair.target}\n" for pair in phrasebook.pairs("test", 45)))
    corpus = '[[data.corpora]]\nsource = ["data/train.{0}"]\ntarget = ["data/train.{1}"]\nvalid_source = ["data/valid.{0}"]\nvalid_target = ["data/valid.{1}"]\nsource_language = "{0}"\ntarget_language = "{1}"\n'  # fmt: skip
    _write(folder / "languages.toml", corpus.format("ko", "en") + corpus.format("en", "ko"))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _write_recordings(folder: Path) -> None:
    """Tones of two words, each with its text."""
    rows = []
    for number, text in enumerate(SPOKEN):
        tones = [np.sin(np.arange(1600) * (0.2 if word == "one" else 0.5)) for word in text.split()]
        write_wav(folder / f"{number}.wav", np.concatenate(tones).astype(np.float32) * 0.5, 8000)
        rows.append(f"{number}.wav\t{text}\n")
    for name, own in (("said", rows), ("more", rows[1:]), ("heard", rows[:2])):
        _write(folder / f"{name}.tsv", "".join(own))
    _write(folder / "words.dict", "ONE  W AH1 N\nTWO  T UW1\n")


def _said(number: int) -> str:
    return f"{NAMES[number % 4]} lives in {PLACES[number * 5 // 4 % 4]}."


def _tagged(number: int) -> str:
    name, place = NAMES[number % 4], PLACES[number * 5 // 4 % 4].split()
    places = "".join(f"{word} {'I' if i else 'B'}-LOC\n" for i, word in enumerate(place))
    return f"{name} B-PER\nlives O\nin O\n{places}. O\n\n"


def _asked(number: int) -> dict:
    text = _said(number)
    answers = {"Who?": NAMES[number % 4], "Where?": PLACES[number * 5 // 4 % 4]}
    questions = [
        {"id": f"{number}{question}", "question": question, "answers": [{"text": own, "answer_start": text.index(own)}]}
        for question, own in answers.items()
    ]
    return {"context": text, "qas": questions}


def _write_images(folder: Path, count: int) -> None:
    """Small images of two classes: dots, and lines."""
    random = np.random.default_rng(count)
    for name in ("dots", "lines"):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = random.integers(0, 100, (8, 8, 3), dtype=np.uint8)
            row, column = random.integers(0, 8, 2)
            pixels[row, column if name == "dots" else slice(None)] = 255
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
