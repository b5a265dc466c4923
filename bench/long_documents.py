"""What masked words gain from a longer text: `python -m bench.long_documents RUN --text FILE`.

Long documents are cut into pieces of each length. The same words are masked whatever the length; the loss is that of these words.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

import heed
from heed.data.masking import ordinary_ids
from heed.data.pretraining import MaskedBatch
from heed.data.readers import lines
from heed.device import choose_device
from heed.evaluation.masked_words import measure_masked
from heed.files import write_json
from heed.vocabularies.vocabulary import Vocabulary

SHARE = 0.15  # of the words that are masked
TOKENS = 32768  # of a batch


def documents(path: Path, vocabulary: Vocabulary, length: int) -> Iterator[np.ndarray]:
    """Stretches of `length` tokens from documents that are separated by blank lines; shorter documents are left out."""
    text: list[str] = []
    for line in [*lines(path), ""]:
        if line.strip():
            text.append(line)
            continue
        ids = np.concatenate(vocabulary.encode(text)) if text else np.empty(0, dtype=np.int64)
        text = []
        for start in range(0, len(ids) - length + 1, length):
            yield ids[start : start + length]


def batches(
    stretches: Sequence[np.ndarray], hidden: Sequence[np.ndarray], vocabulary: Vocabulary, pieces: int
) -> Iterator[MaskedBatch]:
    """The stretches, each cut into so many pieces; `hidden` says which of their tokens are masked."""
    special, rows = vocabulary.special, []
    for ids, masked in zip(stretches, hidden, strict=True):
        shown = np.where(masked, special.mask, ids)
        expected = np.where(masked, ids, -1)
        for part, wanted in zip(np.split(shown, pieces), np.split(expected, pieces), strict=True):
            before = np.array(special.before)
            tokens = np.concatenate([before, part, [special.last]])
            rows.append((tokens, np.concatenate([np.full(len(before), -1), wanted, [-1]])))
    size = max(1, TOKENS // len(rows[0][0]))
    for some in (rows[start : start + size] for start in range(0, len(rows), size)):
        tokens = torch.from_numpy(np.stack([row for row, _ in some]).astype(np.int64))
        wanted = torch.from_numpy(np.stack([row for _, row in some]).astype(np.int64)).flatten()
        places = (wanted >= 0).nonzero().flatten()
        yield MaskedBatch(tokens, None, None, places, wanted[places], None, len(places), len(some), tokens.shape[1])


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.long_documents", description=__doc__)
    parser.add_argument("run", help="a masked language model")
    parser.add_argument("--text", required=True, type=Path, help="documents, with blank lines between them")
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 1024, 2048, 4096], help="each divides the last")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(words)
    filler = heed.load(options.run, device=str(choose_device(options.device)))
    vocabulary, longest = filler.vocabulary, max(options.lengths)
    special = len(vocabulary.special.before) + 1
    room = (min(options.lengths) - special) * (longest // min(options.lengths))
    stretches = list(documents(options.text, vocabulary, room))
    if not stretches:
        parser.error(f"{options.text} has no document of {room} tokens")
    ordinary, random = ordinary_ids(vocabulary), np.random.default_rng(0)
    hidden = [(random.random(room) < SHARE) & ordinary[ids] for ids in stretches]
    found = []
    for length in options.lengths:
        tally, _ = measure_masked(filler.model, batches(stretches, hidden, vocabulary, longest // length))
        found.append({"length": length, "loss": tally.loss, "accuracy": tally.accuracy, "masked": tally.count})
        print(json.dumps(found[-1]), flush=True)
    if options.json:
        write_json(options.json, {"run": options.run, "documents": len(stretches), "rows": found})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
