"""What the systems that train or run a language model share: the weights, the tokens, and the loop of the peers."""

import itertools
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from bench.rows import TextRow
from heed.models.gpt2 import GPT2, GPT2Config
from heed.vocabularies.words import NAMES, Words

BATCHES = 4  # different ones, in turn
TOP_K = 50  # of rows that are sampled


def model(row: TextRow) -> GPT2:
    """A GPT-2 with drawn weights, the same in each process."""
    s = row.shape
    torch.manual_seed(1)
    sizes = {"dim": s.dim, "heads": s.heads, "hidden": s.hidden, "layers": s.layers}
    return GPT2(
        GPT2Config(
            s.vocab,
            **sizes,
            max_length=max(1024, row.length),
            dropout=s.dropout,
            attention_dropout=s.dropout,
            choice_dropout=0.0,
        )
    )


def vocabulary(size: int) -> Words:
    """A vocabulary of this size, whose words are numbers."""
    return Words([(name, 0) for name in (*NAMES, *(f"w{i}" for i in range(len(NAMES), size)))])


def batches(row: TextRow) -> list[tuple[Tensor, Tensor]]:
    """Windows of drawn tokens, and the token expected after each."""
    generator = torch.Generator().manual_seed(2)
    drawn = torch.randint(len(NAMES), row.shape.vocab, (BATCHES, row.batch, row.length + 1), generator=generator)
    return [(own[:, :-1].contiguous(), own[:, 1:].contiguous()) for own in drawn]


def prompts(row: TextRow) -> list[list[int]]:
    generator = torch.Generator().manual_seed(3)
    return torch.randint(len(NAMES), row.shape.vocab, (row.batch, row.prompt), generator=generator).tolist()


def trainer(
    net: nn.Module, objective: Callable[[nn.Module, Tensor, Tensor], Tensor], row: TextRow, device: str, how: str
) -> Callable[[int], int]:
    """The loop of the peers: what makes so many steps, and tells how many tokens they had."""
    net = net.to(device).train()
    made = itertools.cycle([tuple(part.to(device) for part in own) for own in batches(row)])
    if how == "compiled":
        objective = torch.compile(objective, dynamic=False)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, betas=(0.9, 0.95), fused=True)

    def run(steps: int) -> int:
        for _ in range(steps):
            tokens, expected = next(made)
            with torch.autocast("cuda", dtype=torch.bfloat16) if device == "cuda" else nullcontext():
                value = objective(net, tokens, expected)
            value.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        return steps * row.batch * row.length

    return run


class Generating:
    """Writes the same texts again and again; `said` is what they were."""

    def __init__(self, generate: Callable[[], list[list[int]]]):
        self.generate, self.said = generate, []

    def __call__(self, times: int) -> int:
        for _ in range(times):
            self.said = self.generate()
        return times * sum(map(len, self.said))
