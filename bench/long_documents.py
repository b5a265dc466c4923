"""What masked words gain from a longer text: `python -m bench.long_documents RUN --text FILE`.

Long documents are cut into pieces of each length. The same words are masked whatever the length; the loss is that of these words. With `--margin N`
only words count that have N tokens of their piece on either side whatever the length, so that cuts through a neighbourhood play no part. `less` is how much
lower the loss is than in the shortest pieces, with a 95 % interval by resampling documents.
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
from heed.evaluation.classification import Interval, intervals
from heed.evaluation.masked_words import measure_masked
from heed.files import write_json
from heed.vocabularies.vocabulary import Vocabulary

SHARE = 0.15  # of the words that are masked
TOKENS = 32768  # of a batch


def documents(path: Path, vocabulary: Vocabulary, length: int) -> Iterator[tuple[int, np.ndarray]]:
    """Stretches of `length` tokens, each with the number of its document; blank lines separate documents, and shorter ones are left out."""
    text: list[str] = []
    number = 0
    for line in [*lines(path), ""]:
        if line.strip():
            text.append(line)
            continue
        ids = np.concatenate(vocabulary.encode(text)) if text else np.empty(0, dtype=np.int64)
        text, number = [], number + bool(text)
        for start in range(0, len(ids) - length + 1, length):
            yield number, ids[start : start + length]


def batches(
    stretches: Sequence[np.ndarray],
    hidden: Sequence[np.ndarray],
    counted: np.ndarray,
    vocabulary: Vocabulary,
    pieces: int,
) -> Iterator[MaskedBatch]:
    """The stretches, each cut into so many pieces; `hidden` says which of their tokens are masked, `counted` at which positions they count."""
    special, rows = vocabulary.special, []
    for ids, masked in zip(stretches, hidden, strict=True):
        shown = np.where(masked, special.mask, ids)
        expected = np.where(masked & counted, ids, -1)
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


def inside(room: int, shortest: int, margin: int) -> np.ndarray:
    """The positions of a stretch that have `margin` others on either side in each of its shortest pieces."""
    place = np.arange(room) % shortest
    return (place >= margin) & (place < shortest - margin)


def gain(base: np.ndarray, own: np.ndarray, counts: np.ndarray, number: np.ndarray) -> Interval:
    """How much lower the mean loss is than in `base`: sums and counts of stretches, whose documents are resampled."""
    documents = np.stack([np.bincount(number, values) for values in (base - own, counts)], axis=1)
    documents = documents[np.unique(number)]
    return intervals(lambda rows, _: {"less": rows[:, 0].sum() / max(1, rows[:, 1].sum())}, documents, number)["less"]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.long_documents", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="a masked language model")
    parser.add_argument("--text", required=True, type=Path, help="documents, with blank lines between them")
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 1024, 2048, 4096], help="each divides the last")
    parser.add_argument(
        "--margin", type=int, default=0, metavar="N", help="tokens on either side of the words that count (default: 0)"
    )
    parser.add_argument(
        "--only", type=int, nargs="+", metavar="N", help="measure these of --lengths, on the same words (default: all)"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(words)
    lengths = sorted(options.lengths)
    if any(lengths[-1] % length for length in lengths):
        parser.error(f"--lengths: each must divide the longest, {lengths[-1]}")
    if not set(options.only or ()) <= {*lengths}:
        parser.error(f"--only: each must be one of --lengths, {', '.join(map(str, lengths))}")
    torch.set_num_threads(options.threads)
    filler = heed.load(options.run, device=str(choose_device(options.device)))
    vocabulary, pieces = filler.vocabulary, lengths[-1] // lengths[0]
    shortest = lengths[0] - len(vocabulary.special.before) - 1
    if not 0 <= 2 * options.margin < shortest:
        parser.error(f"--margin is {options.margin}; it must be at least 0 and below {shortest / 2:g}")
    found = list(documents(options.text, vocabulary, shortest * pieces))
    if not found:
        parser.error(f"{options.text} has no document of {shortest * pieces} tokens")
    number, stretches = np.array([one for one, _ in found]), [ids for _, ids in found]
    ordinary, random = ordinary_ids(vocabulary), np.random.default_rng(0)
    hidden = [(random.random(len(ids)) < SHARE) & ordinary[ids] for ids in stretches]
    counted, rows, base = inside(shortest * pieces, shortest, options.margin), [], None
    for length in sorted(options.only or lengths):
        cut = lengths[-1] // length
        tally, _ = measure_masked(filler.model, batches(stretches, hidden, counted, vocabulary, cut))
        own = tally.rows.reshape(len(stretches), cut, 3).sum(axis=1)
        base = own if base is None else base
        less, low, high = gain(base[:, 0], own[:, 0], own[:, 2], number)
        scores = {"loss": tally.loss, "accuracy": tally.accuracy, "masked": tally.count}
        rows.append({"length": length, **scores, "less": less, "low": low, "high": high})
        print(json.dumps(rows[-1]), flush=True)
    if options.json:
        facts = {
            "run": options.run,
            "documents": len(set(number)),
            "stretches": len(stretches),
            "margin": options.margin,
        }
        write_json(options.json, {**facts, "rows": rows})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
