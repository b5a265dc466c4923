"""JoeyNMT in training: its model and its loss. (It also drops attention weights and hidden units; there is no setting.)"""

from collections.abc import Callable

from torch import Tensor, nn

from bench import joey, plain
from bench.rows import PAD, SMOOTHING, TrainRow


def build(row: TrainRow, device: str, how: str) -> Callable[[int], int]:
    model = joey.model(row.shape)
    model.loss_function = ("crossentropy", SMOOTHING)
    return plain.trainer(model, _objective, row, device, how, ignored=PAD)


def _objective(model: nn.Module, sources: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
    spoken = labels != PAD
    total, *_ = model(
        "loss", src=sources, src_mask=plain.valid(sources)[:, None], src_length=None, trg_input=inputs, trg=labels,
        trg_mask=spoken[:, None],
    )  # fmt: skip
    return total / spoken.sum()
