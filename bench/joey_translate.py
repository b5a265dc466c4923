"""JoeyNMT's search, with heed's weights under its names."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from joeynmt.batch import Batch
from joeynmt.search import search
from torch import Tensor

from bench import joey
from bench.rows import LAST, PAD, Shape, TranslateRow

# heed's names, and JoeyNMT's in the encoder and in the decoder
LAYER = {
    "attention.body": ("src_src_att", "trg_trg_att"), "attention.norm": ("layer_norm", "x_layer_norm"),
    "cross.body": (None, "src_trg_att"), "cross.norm": (None, "dec_layer_norm"),
    "mlp.body.up": ("feed_forward.pwff_layer.0",) * 2, "mlp.body.down": ("feed_forward.pwff_layer.3",) * 2,
    "mlp.norm": ("feed_forward.layer_norm",) * 2,
}  # fmt: skip
PARTS = {"q": "q_layer", "k": "k_layer", "v": "v_layer", "out": "output_layer"}


def build(folder: Path, device: str, how: str) -> Callable[[list[list[int]], TranslateRow], list[list[int]]]:
    """What translates sources as a row says; the model is built for the first, and all have the same."""
    held, models = np.load(folder / "weights.npz"), []

    def opened(shape: Shape):
        if not models:
            models.append(joey.model(shape).to(device).eval())
            fill(models[0], {name: torch.from_numpy(held[name]) for name in held.files})
        return models[0]

    def translate(sources: list[list[int]], row: TranslateRow) -> list[list[int]]:
        model, tokens = opened(row.shape), torch.tensor([[*own, LAST] for own in sources])
        size, place = torch.full((len(tokens),), tokens.shape[1]), torch.device(device)
        batch = Batch(tokens, size, None, None, None, torch.arange(len(tokens)), place, PAD, LAST, is_train=False)
        found = search(
            model, batch, row.target, row.beam, 0.0, min_output_length=row.target, generate_unk=False, n_best=1
        )
        return found[0].tolist()

    return translate


def fill(model: torch.nn.Module, held: dict[str, Tensor]) -> None:
    """Put heed's weights into a model of JoeyNMT's."""
    named = {joeys(name): weight for name, weight in held.items()}
    for name in ("src_embed.lut.weight", "trg_embed.lut.weight", "decoder.output_layer.weight"):
        named[name] = held["tokens.weight"]
    named |= {name: waves for name, waves in model.state_dict().items() if name.endswith("pe.pe")}
    named.pop("tokens.weight")
    model.load_state_dict(named)


def joeys(name: str) -> str:
    """`encoder.layers.0.attention.body.q.weight` becomes `encoder.layers.0.src_src_att.q_layer.weight`."""
    if not name.startswith(("encoder.", "decoder.")):
        return name
    side, layers, number, rest = name.split(".", 3)
    ours = next(own for own in LAYER if rest.startswith(own + "."))
    last = rest.removeprefix(ours + ".").split(".")
    theirs = LAYER[ours][side == "decoder"]
    return ".".join([side, layers, number, theirs, *(PARTS.get(part, part) for part in last)])
