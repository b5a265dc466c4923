import itertools
import json

import numpy as np
import pytest
from PIL import Image

from heed.audio.files import write_wav
from heed.data.synthetic import articles
from tests import fixed_pairs


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A folder with pairs, articles and labels."""
    folder = tmp_path_factory.mktemp("corpus")
    pairs = list(fixed_pairs.pairs("train", 80))
    made = list(articles.articles("train", 40, 0))
    columns = {
        "ko": [pair.source for pair in pairs],
        "en": [pair.target for pair in pairs],
        "labels": ["question" if pair.target.endswith("?") else "statement" for pair in pairs],
        "lengths": [str(len(pair.target) / 10) for pair in pairs],
        "questions": [
            f"{one.source}\t{one.target}\t{two.target}\t0" for one, two in zip(pairs, pairs[::-1], strict=True)
        ],
        "conll": [line for pair in pairs for line in _tagged(pair.target)],
        "scored": [f"{pair.target}\t{pair.source}\t{i % 7}" for i, pair in enumerate(pairs)],
        "log": [f"u{i} " + " ".join(f"i{(i + i % 3 * j) % 11}" for j in range(3 + i % 5)) for i in range(80)],
        "recordings": [f"{i}.wav\t{pair.target}" for i, pair in enumerate(pairs[:12])],
        "articles": [article[0] for article in made],
    }
    for name, lines in columns.items():
        (folder / f"train.{name}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
        (folder / f"valid.{name}").write_text("".join(f"{line}\n" for line in lines[:6]), "utf-8")
    for name, own in (("train", pairs), ("valid", pairs[:6])):
        (folder / f"{name}.squad").write_text(json.dumps({"version": "1.1", "data": [_article(own)]}), "utf-8")
    for name, count in (("train", 40), ("valid", 12)):
        _images(folder / f"{name}.images", count)
    for i in range(12):
        write_wav(folder / f"{i}.wav", 0.5 * np.sin(np.arange(2000 + 400 * i) * 0.05 * (1 + i % 3)), 8000)
    return folder


def _images(folder, count):
    """Images of stripes, down or across, a folder for each kind."""
    random = np.random.default_rng(count)
    for number in range(count):
        pixels = random.integers(0, 120, (16, 16, 3)).astype(np.uint8)
        (pixels[::2] if number % 2 else pixels[:, ::2])[:] += 120
        path = folder / ("odd" if number % 2 else "even") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)


def _tagged(text):
    """The words of a sentence, one a line: names of one word begin with a capital."""
    words = text.split()
    return [*(f"{word} {'B-NAME' if word[0].isupper() else 'O'}" for word in words), ""]


def _article(pairs):
    """Each sentence asks for its last word in the one before it."""
    paragraphs = []
    for number, (one, other) in enumerate(itertools.pairwise(pairs)):
        word = one.target.split()[-1]
        answer = {"text": word, "answer_start": one.target.rindex(word)}
        question = {"id": f"q{number}", "question": other.target, "answers": [answer]}
        paragraphs.append({"context": one.target, "qas": [question]})
    return {"title": "phrases", "paragraphs": paragraphs}
