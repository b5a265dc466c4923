"""Generate images value by value in batches, with cached keys; some pixels may be given."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from heed.models.abilities import DrawsImages
from heed.models.outputs import check_outputs


def random_numbers(model: Any, seed: int, images: range) -> Float[Tensor, "b t d"]:
    """The random numbers of each step of some images of a seed. Each image has its own, whatever else is in a batch."""
    shape = model.config.max_length, model.draws
    own = [np.random.default_rng([seed, image]).random(shape, np.float32) for image in images]
    return torch.from_numpy(np.stack(own))


@torch.inference_mode()
def draw_images(model: DrawsImages, uniform: Float[Tensor, "b t d"], **options: Any) -> UInt8[Tensor, "b h w c"]:
    """Generate images; the options are those of `draw_turns`."""
    return model.in_place(torch.stack(list(draw_turns(model, uniform, **options)), dim=1))


@torch.inference_mode()
def draw_turns(
    model: DrawsImages,
    uniform: Float[Tensor, "b t d"],
    *,
    temperature: float = 1.0,
    labels: Int[Tensor, " b"] | None = None,
    small: UInt8[Tensor, "b s s c"] | None = None,
    known: tuple[UInt8[Tensor, "b h w c"], Bool[Tensor, "h w"]] | None = None,
    each_turn: Callable[[int, Any], None] = lambda turn, states: None,
) -> Iterator[Int[Tensor, "b k"]]:
    """The values that each step adds to images, as soon as they are sampled by their `uniform` random numbers from 0
    to 1. `known`: images, and which of their pixels are given; the others are generated. `each_turn` gets the number
    of each step and the states its values were sampled from.
    """
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}; it must be above 0")
    state, before = model.start_images(len(uniform), labels, small), None
    given, fixed = (None, None) if known is None else _by_turn(model, *known)
    for turn in range(model.config.max_length):
        states = model.step_pixel(before, turn, state)
        if states.device.type == "cpu":  # a GPU would have to wait
            check_outputs(states)
        each_turn(turn, states)
        before = model.sample_values(states, turn, state, temperature, uniform[:, turn])
        if given is not None and fixed[turn]:
            before = given[:, turn]
        yield before


def _by_turn(model: Any, images: Tensor, which: Tensor) -> tuple[Tensor, list[bool]]:
    """The values of given images by step, and for each step whether they are given."""
    marks = which[None, :, :, None].expand(1, -1, -1, images.shape[3]).to(torch.uint8)
    return model.in_turn(images), model.in_turn(marks)[0, :, 0].bool().tolist()
