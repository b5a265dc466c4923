"""heed look"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed look runs/en-de "A man is sleeping." --out attention.html     # a page to explore
  heed look runs/en-de "A man is sleeping." --out attention.png      # an image; .svg works too
  heed look runs/en-de "A man is sleeping." --out attention.json     # the numbers
  heed look runs/en-de "A man is sleeping." --target "Ein Mann schläft." --out given.html
  heed look runs/en-de "A man is sleeping." --part encoder --layer 2 --head 1 --out head.png
  heed look runs/wiki "A man is sleeping ." --out surprise.html      # for a language model: the surprisal of each word

The page shows every layer and head of the encoder, the decoder and the cross attention, the most likely words at each
step, and the beam search step by step. Layers and heads are counted from 1. For a recurrent model (seq2seq) it shows
the attention, if any, and the hidden states.
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device, add_direction, split_names

    parser.add_argument("folder", type=split_names, help="a run or a model folder")
    parser.add_argument("text", help="the sentence to translate; for a language model, the text")
    parser.add_argument("--target", help="inspect this translation instead of the model's own")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="a .html, .png, .svg or .json file")
    parser.add_argument(
        "--part", choices=["cross", "encoder", "decoder"], default="cross", help="which attention to enlarge"
    )
    parser.add_argument("--layer", type=int, help="only this layer")
    parser.add_argument("--head", type=int, help="only this head")
    parser.add_argument("--beam", type=int, help="beam size")
    add_direction(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import errors, model_shape, open_product
    from heed.cli.language import look as look_at_text
    from heed.lab.draw import draw
    from heed.lab.fonts import describe_missing

    translator = open_product(args, "look")
    if "translate" not in translator.verbs:
        return look_at_text(args, translator)
    c = translator.model.config
    weights = sum(weight.numel() for weight in translator.model.parameters())
    name = f"{','.join(args.folder)} · {model_shape(c)} · {weights / 1e6:.1f}M weights"
    chosen = {"beam": args.beam} if args.beam is not None else {}
    look = translator.look(args.text, args.target, name, **chosen)
    missing = draw(look, args.out, part=args.part, layer=args.layer, head=args.head)
    if missing:
        errors().print(describe_missing(missing), highlight=False, soft_wrap=True)
    print(look.target_text)
    errors().print(f"[dim]Attention: {args.out}[/]", highlight=False, soft_wrap=True)
    return 0
