"""heed recipes"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed recipes                                # their names
  heed recipes phrasebook                     # show one
  heed recipes gpt2 --out my.toml             # copy one to edit
  heed train phrasebook --out runs/ko-en      # train with one
  heed recipes all-settings                   # every setting with its default
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="the recipe to show (default: list all)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the recipe to this file, for editing")


def run(args: argparse.Namespace) -> int:
    from heed.files import write_text
    from heed.runs import built_in

    if args.name is None:
        if args.out is not None:
            raise ValueError(
                "--out writes one recipe: give its name, for example heed recipes phrasebook --out my.toml"
            )
        width = max(map(len, built_in.names()), default=0)
        for name in built_in.names():
            print(f"{name:{width}}  {built_in.about(name)}")
        return 0
    text = built_in.path(args.name.removesuffix(".toml")).read_text("utf-8")
    if args.out is None:
        print(text, end="")
        return 0
    if args.out.exists():
        raise ValueError(f"{args.out} already exists: choose another file")
    write_text(args.out, text)
    return 0
