"""Weights of HiFi-GAN generators: SpeechT5HifiGan folders of transformers, and the authors' checkpoints as
safetensors.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heed import config as settings
from heed.models.folder import check_finite, compare, outline, put, read_weights, shapes
from heed.models.folder_config import read_json
from heed.models.hifi_gan import HiFiGAN, HiFiGANConfig
from heed.vocabularies.spectrogram import Spectrogram

CONFIG, SAFE = "config.json", ".safetensors"
OURS = {
    "inputs": ("model_in_dim", "num_mels"),
    "rate": ("sampling_rate",),
    "channels": ("upsample_initial_channel",),
    "upsampling": ("upsample_rates",),
    "upsampling_kernels": ("upsample_kernel_sizes",),
    "kernels": ("resblock_kernel_sizes",),
    "dilations": ("resblock_dilation_sizes",),
    "slope": ("leaky_relu_slope",),
}
STATED = ("n_fft", "fmin", "fmax")  # of the spectrogram that it was trained on
MOST = 1_000_000  # samples or Hz
ENDS = {"conv_pre": "first", "conv_post": "last"}
PARTS = {"convs1": "dilated", "convs2": "plain"}
NORMED = re.compile(r"(.+)\.(?:weight_g|parametrizations\.weight\.original0)")


def read(path: str | Path) -> tuple[HiFiGAN, Spectrogram]:
    """The generator in a folder, or in a .safetensors file next to its config.json, and the spectrograms it expects."""
    weights = _weights_file(Path(path))
    facts = read_json(weights.parent / CONFIG, "settings of a vocoder")
    where = f"{weights.parent / CONFIG}: "
    config = _config(facts, where)
    ours = renamed(folded(read_weights(weights), weights), config)
    compare(outline(HiFiGAN, config, where), shapes(ours), weights)
    check_finite(ours, weights)
    model = HiFiGAN(config)
    put(model, ours, weights)
    return model.eval().requires_grad_(False), _spectrogram(facts, config, where)


def _weights_file(path: Path) -> Path:
    if path.is_file():
        if path.suffix != SAFE:
            raise ValueError(f"{path} is not a {SAFE} file: Heed loads no pickles, so convert the weights first")
        return path
    if not path.is_dir():
        raise ValueError(f"{path}: no such file or folder")
    found = sorted(path.glob(f"*{SAFE}"))
    if len(found) != 1:
        pickles = ", and Heed loads no pickles: convert the weights first" if not found else ": name one of them"
        raise ValueError(f"{path} has {len(found)} {SAFE} files{pickles}")
    return found[0]


def _config(facts: Mapping[str, Any], where: str) -> HiFiGANConfig:
    if str(facts.get("resblock", "1")) != "1":
        raise ValueError(
            f"{where}resblock is {facts['resblock']!r}; Heed reads generators with residual blocks of kind 1"
        )
    values: dict[str, Any] = {}
    for name, theirs in OURS.items():
        given = [one for one in theirs if one in facts]
        if given:
            values[name] = facts[given[0]]
        elif name not in ("slope", "rate") and "model_type" not in facts:
            raise ValueError(f"{where}{theirs[-1]} is missing: it is not the config of a HiFi-GAN generator")
    values["normalize"] = facts.get("normalize_before", "model_type" in facts)
    try:
        return settings.read(HiFiGANConfig, values, where)
    except ValueError as error:
        raise ValueError(where + str(error).removeprefix(where)) from None


def _spectrogram(facts: Mapping[str, Any], config: HiFiGANConfig, where: str) -> Spectrogram:
    """The spectrogram settings of the vocoder; the authors' code uses natural logarithms, transformers folders do not
    say.
    """
    needed = (*STATED, "log") if "model_type" in facts else STATED
    missing = [name for name in needed if name not in facts]
    if missing:
        raise ValueError(
            f"{where}{', '.join(missing)} must be stated, since a vocoder works only with the spectrogram settings it was "
            'trained with: add them to the file ("log" is "e" or "10")'
        )
    width, low, high = (facts[name] for name in STATED)
    high = config.rate / 2 if high is None else high
    window = facts.get("win_size", width)
    if not all(type(one) in (int, float) and abs(one) <= MOST for one in (width, window, low, high)):
        raise ValueError(f"{where}n_fft, win_size, fmin and fmax must be numbers up to {MOST:,}")
    log = str(facts.get("log", "e"))
    return Spectrogram(config.rate, config.inputs, config.hop, int(width), int(window), float(low), float(high), log)


def folded(held: Mapping[str, Tensor], path: Path) -> dict[str, Tensor]:
    """Merge weight normalization: direction and norm become one tensor."""
    found = {}
    for name, weight in held.items():
        if match := NORMED.fullmatch(name):
            other = ".weight_v" if name.endswith("_g") else ".parametrizations.weight.original1"
            if match[1] + other not in held:
                raise ValueError(f"{path} holds {name} but not {match[1] + other}: it is incomplete")
            found[f"{match[1]}.weight"] = torch._weight_norm(held[match[1] + other], weight, 0)
        elif not name.endswith((".weight_v", ".original1")):
            found[name] = weight
    return found


def renamed(weights: Mapping[str, Tensor], config: HiFiGANConfig) -> dict[str, Tensor]:
    """Names of Heed's model; unknown names are kept."""
    made = {_name(name, len(config.kernels)): weight for name, weight in weights.items()}
    return made if config.normalize else {name: own for name, own in made.items() if name not in ("mean", "scale")}


def _name(name: str, kernels: int) -> str:
    first, _, rest = name.partition(".")
    if first in ENDS:
        return f"{ENDS[first]}.{rest}"
    if first in ("ups", "upsampler"):
        return f"upsamplers.{rest}"
    number, _, inner = rest.partition(".")
    part, _, end = inner.partition(".")
    if first == "resblocks" and number.isdecimal() and part in PARTS:
        return f"blocks.{int(number) // kernels}.{int(number) % kernels}.{PARTS[part]}.{end}"
    return name
