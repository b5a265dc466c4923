"""Write transformer_xl.json, what transformers' Transformer-XL computes: python tests/models/transformer_xl_numbers.py

The last release that had the model is 4.57.6; the tests run with a later one. In an environment of its own (Python 3.11):
pip install torch 'transformers==4.57.6'. Two lines of that release do not run in float64 and are replaced here: it calls
type_as with a dtype, and rounds masked scores to float32. The default dtype is float64, so that its sinusoids are too.
"""

import json
import zlib
from pathlib import Path

import numpy as np
import torch

CONFIG = {
    "vocab_size": 24,
    "cutoffs": [8, 14],
    "dim": 8,
    "heads": 2,
    "hidden": 12,
    "layers": 2,
    "memory": 5,
    "farthest": 6,
}
CONFIG |= {"divisor": 2, "dropout": 0.0}
CASES = {
    "same length": {"same_length": True, "zeros": False},
    "whole window": {"same_length": False, "zeros": False},
    "zeros before the text": {"same_length": True, "zeros": True},  # as their init_mems begins
}
TOKENS = torch.arange(20).mul(7).remainder(24).view(2, 10)
SEGMENTS = [4, 3, 3]


def weight(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Weights of our name from N(0, 0.2), by numpy's frozen generator."""
    return torch.from_numpy(np.random.RandomState(zlib.crc32(name.encode())).normal(0, 0.2, shape))


def digest(x: torch.Tensor) -> list[float]:
    """Three sums over all entries, each with other factors."""
    flat = x.detach().double().flatten()
    return [float((flat * torch.cos((j + 1.0) * torch.arange(len(flat), dtype=torch.float64))).sum()) for j in range(3)]


def their_weights(model: torch.nn.Module) -> None:
    own = dict(model.named_parameters())
    d = CONFIG["dim"]

    def put(theirs: str, value: torch.Tensor) -> None:
        own.pop(theirs).data.copy_(value)

    for i, (count, width) in enumerate([(8, 8), (6, 4), (10, 2)]):
        put(f"transformer.word_emb.emb_layers.{i}.weight", weight(f"tokens.tables.{i}.weight", (count, width)))
        put(f"transformer.word_emb.emb_projs.{i}", weight(f"tokens.wider.{i}.weight", (d, width)))
        put(f"crit.out_layers.{i}.bias", weight(f"tokens.biases.{i}", (count,)))
    put("crit.cluster_weight", weight("tokens.clusters.weight", (2, d)))
    put("crit.cluster_bias", weight("tokens.clusters.bias", (2,)))
    put("crit.out_projs.0", weight("tokens.head.weight", (d, d)).T)
    for i in range(CONFIG["layers"]):
        ours, theirs = f"stack.layers.{i}", f"transformer.layers.{i}"
        attention = f"{ours}.attention.body"
        qkv = torch.cat([weight(f"{attention}.{x}.weight", (d, d)) for x in "qkv"])
        put(f"{theirs}.dec_attn.qkv_net.weight", qkv)
        put(f"{theirs}.dec_attn.o_net.weight", weight(f"{attention}.out.weight", (d, d)))
        put(f"{theirs}.dec_attn.r_net.weight", weight(f"{attention}.relative.positions.weight", (d, d)))
        for x, name in (("u", "r_w_bias"), ("v", "r_r_bias")):
            put(f"{theirs}.dec_attn.{name}", weight(f"{attention}.relative.{x}", (2, 1, 4))[:, 0])
        for part, name in (("attention", "dec_attn"), ("mlp", "pos_ff")):
            for end in ("weight", "bias"):
                put(f"{theirs}.{name}.layer_norm.{end}", weight(f"{ours}.{part}.norm.{end}", (d,)))
        for part, name, shape in (("up", "0", (12, 8)), ("down", "3", (8, 12))):
            put(f"{theirs}.pos_ff.CoreNet.{name}.weight", weight(f"{ours}.mlp.body.{part}.weight", shape))
            put(f"{theirs}.pos_ff.CoreNet.{name}.bias", weight(f"{ours}.mlp.body.{part}.bias", shape[:1]))
    assert not own, own.keys()


def main() -> None:
    import transformers
    from transformers.models.deprecated.transfo_xl import TransfoXLConfig, TransfoXLLMHeadModel

    torch.set_default_dtype(torch.float64)
    torch.Tensor.float = lambda self: self
    old = torch.Tensor.type_as
    torch.Tensor.type_as = lambda self, other=None, dtype=None: self.to(dtype) if dtype else old(self, other)
    found = {"origin": f"transformers {transformers.__version__}, torch {torch.__version__}"}
    names = {"d_model": "dim", "d_embed": "dim", "n_head": "heads", "d_inner": "hidden", "n_layer": "layers"}
    names |= {"mem_len": "memory", "clamp_len": "farthest", "div_val": "divisor"}
    names |= {name: name for name in ("vocab_size", "cutoffs", "dropout")}
    for case, own in CASES.items():
        settings = {theirs: CONFIG[ours] for theirs, ours in names.items()}
        config = TransfoXLConfig(**settings, d_head=4, same_length=own["same_length"])
        model = TransfoXLLMHeadModel(config).double().eval()
        their_weights(model)
        mems = None if own["zeros"] else [torch.zeros(0, 2, CONFIG["dim"]) for _ in range(CONFIG["layers"])]
        found[case] = []
        for part in TOKENS.split(SEGMENTS, dim=1):
            with torch.no_grad():
                loss = model(part, mems=mems, labels=part).loss
                out = model(part, mems=mems, output_hidden_states=True, output_attentions=True)
            mems = out.mems
            numbers = {"logits": digest(out.logits), "last": out.logits[-1, -1].tolist(), "loss": loss.item()}
            numbers |= {
                "hidden": [digest(x) for x in out.hidden_states],
                "attentions": [digest(x) for x in out.attentions],
            }
            found[case].append(numbers | {"memories": [digest(x.transpose(0, 1)) for x in out.mems]})
    Path(__file__).with_name("transformer_xl.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
