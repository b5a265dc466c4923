"""heed convert"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed convert Helsinki-NLP/opus-mt-ko-en --out models/ko-en                # a name on the Hugging Face hub
  heed convert Helsinki-NLP/opus-mt-ko-en --revision main --out models/ko-en
  heed convert downloads/bart-large-cnn --out models/bart                   # a transformers folder
  heed convert runs/en-de --out exported                                    # for transformers (model.norm = "post")
  heed convert runs/en-de --to ctranslate2 --quantize int8 --out fast       # for CTranslate2

heed reads MarianMT, BART, Pegasus, mBART-50, M2M-100, NLLB, GPT, GPT-2, CTRL, BERT, ALBERT, RoBERTa, ELECTRA and
BigBird. A Heed Transformer is exported to transformers as a Marian model if it has the paper's norms and positions
(model.norm = "post", model.positions = "sinusoidal"), and to CTranslate2 whatever its architecture. GPT-2, BERT and
RoBERTa are exported to both. With HF_HUB_OFFLINE=1 names are looked up in the cache only.
"""
FORMS = ("heed", "huggingface", "ctranslate2")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a run, a model folder, a transformers folder, or a name on the hub")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where to write the model")
    parser.add_argument("--to", choices=FORMS, help="default: huggingface for a Heed model, heed for any other")
    parser.add_argument("--quantize", metavar="KIND", help="for CTranslate2: int8, float16, …")
    parser.add_argument("--revision", help="for a name on the hub: a commit, a tag or a branch")


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import errors
    from heed.files import refuse_existing
    from heed.loading import open_package

    refuse_existing(args.out)
    if args.quantize and args.to != "ctranslate2":
        raise ValueError("--quantize goes with --to ctranslate2")
    package = open_package(args.model, args.revision)
    theirs = "heed" not in package.facts
    to = args.to or ("heed" if theirs else "huggingface")
    if to != "heed":
        _check_exportable(package, args.model)
    result = {"heed": _heed, "huggingface": _huggingface, "ctranslate2": _ctranslate2}[to](package, args)
    ignored = package.facts.get("origin", {}).get("left")
    if theirs and ignored:
        result += f". These generation settings are not supported and were dropped: {', '.join(ignored)}"
    errors().print(f"{args.out} is {result}", soft_wrap=True, markup=False, highlight=False)
    return 0


def _check_exportable(package, name: str) -> None:
    """Refuse models with no equivalent in transformers and CTranslate2."""
    from heed.vocabularies.words import Words

    what = None if hasattr(package.model.config, "heads") else "is a recurrent network"
    if "images" not in package.processors and isinstance(package.vocabularies[0], Words):
        what = "has a vocabulary of whole words"
    if what:
        raise ValueError(f"{name} {what}, which neither transformers nor CTranslate2 supports: it cannot be exported")


def _heed(package, args: argparse.Namespace) -> str:
    from heed.convert import model_card
    from heed.files import atomic_folder, write_text
    from heed.loading import write_package

    with atomic_folder(args.out) as part:
        write_package(package, part)
        write_text(part / "README.md", model_card.heed(package))
    return f"a model folder of heed ({model_card.title(package)}): {model_card.use(package, args.out)}"


def _huggingface(package, args: argparse.Namespace) -> str:
    from heed.convert import huggingface, model_card

    made = huggingface.write(package, args.out)
    use = f'{made.auto_class}.from_pretrained("{args.out}")'
    article = "an" if made.name[0] in "AEIOU" else "a"
    beside = "".join(f"; beside it {args.out / name}" for name in made.beside(package))
    return f"{article} {made.name} of transformers ({model_card.title(package)}): {use}{beside}"


def _ctranslate2(package, args: argparse.Namespace) -> str:
    from heed.convert import ctranslate2, model_card

    ctranslate2.write(package, args.out, args.quantize)
    kind = args.quantize or "float32"
    return f"for CTranslate2, with weights in {kind} ({model_card.title(package)}): its README.md shows how to run it"
