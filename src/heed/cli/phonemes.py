"""heed phonemes"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed phonemes cmudict.dict "Hello, world."                     # the phonemes of a text
  heed phonemes cmudict.dict "A blorf." --g2p runs/g2p           # words missing from the dictionary, by a trained model
  heed phonemes cmudict.dict --out g2p                           # files to train such a model
  heed train recipes/g2p.toml --out runs/g2p
  heed evaluate runs/g2p --source g2p/test.letters --reference g2p/test*.phonemes --phonemes
  heed train recipes/voice.toml --set data.phonemes=cmudict.dict --set data.g2p=runs/g2p --out runs/voice

The dictionary has the format of CMUdict, a word and its phonemes on each line, plain or as .gz or .xz; Heed does not
include one. --out writes train, valid and test (.letters, .phonemes); no word is in two of them. test.2.phonemes,
test.3.phonemes, ... have alternative pronunciations of the test words, which count as correct too.
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device
    from heed.cli.speak import add_g2p

    option = parser.add_argument
    option("dictionary", type=Path, metavar="FILE", help="a pronouncing dictionary in the format of CMUdict")
    option("text", nargs="?", help="show the phonemes of this text")
    option("--out", type=Path, metavar="FOLDER", help="write parallel files of letters and phonemes")
    option("--valid", type=int, help="number of validation words (default: one in 50, at most 1,000)")
    option("--test", type=int, help="number of test words (default: one in 10, at most 5,000)")
    option("--no-stress", action="store_true", help="omit vowel stress: AH instead of AH0")
    option("--seed", type=int, default=0, help="random seed; the same seed gives the same split")
    add_g2p(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.data import pronunciations
    from heed.files import atomic_folder

    if (args.text is None) == (args.out is None):
        raise ValueError("give a text to pronounce, or --out FOLDER to write training data")
    dictionary = pronunciations.read(args.dictionary, stress=not args.no_stress)
    if args.text is not None:
        print(_spoken(args, dictionary))
        return 0
    parts = pronunciations.split(dictionary, args.valid, args.test, args.seed)
    with atomic_folder(args.out) as folder:
        names = pronunciations.write(folder, dictionary, parts)
    counts = (
        f"{len(parts.train):,} words to train on, {len(parts.valid):,} to validate on, {len(parts.test):,} to test on"
    )
    print(f"{args.out}: {counts}; references of the test: {', '.join(names)}")
    return 0


def _spoken(args: argparse.Namespace, dictionary: dict[str, list[str]]) -> str:
    from heed.vocabularies.phonemes import of_dictionary

    vocabulary = of_dictionary(dictionary)
    missing = vocabulary.missing([args.text])
    if missing and args.g2p:
        from heed.products.pronunciation import open_model

        vocabulary.add(open_model(args.g2p, args.device)(missing), args.g2p)
    return vocabulary.decode(vocabulary.encode([args.text])[0])
