"""JoeyNMT's model, for both of its parts here. It runs in a virtual environment of its own, without heed."""

from joeynmt.model import build_model
from torch import nn

from bench.rows import FIRST, LAST, PAD, UNKNOWN, Shape


class Ids:
    """As much of a vocabulary as the model asks for; JoeyNMT's own has other ids for padding and the unknown."""

    pad_index, unk_index, bos_index, eos_index, sep_index = PAD, UNKNOWN, FIRST, LAST, None
    specials, lang_tags = (), ()

    def __init__(self, size: int):
        self.size = size

    def __len__(self) -> int:
        return self.size


def model(s: Shape) -> nn.Module:
    side = {
        "type": "transformer", "num_layers": s.layers, "num_heads": s.heads, "hidden_size": s.dim, "ff_size": s.hidden,
        "dropout": s.dropout, "layer_norm": "post", "embeddings": {"embedding_dim": s.dim, "scale": True},
    }  # fmt: skip
    ids = Ids(s.vocab)
    return build_model({"encoder": side, "decoder": side, "tied_embeddings": True, "tied_softmax": True}, ids, ids)
