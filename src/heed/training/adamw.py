"""torch's AdamW without importing its compiler, which takes a second or two at the start of training."""

import torch


def _import_no_compiler() -> None:
    """Methods marked as not to be compiled import the compiler to say so. Nothing here compiles an optimizer."""
    for method in vars(torch.optim.Optimizer).values():
        plain = getattr(method, "__wrapped__", None)
        if plain is not None and method.__module__ == "torch.optim.optimizer":
            plain.__dict__.setdefault("__dynamo_disable", plain)


class AdamW(torch.optim.AdamW):
    # the wrapper of torch's own method imports the compiler too; what else it does, no_grad does
    step = torch.no_grad()(torch.optim.Adam.step.__wrapped__)


_import_no_compiler()
