"""A model folder: config.json and model.safetensors. Plain data, no code."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from heed.config import read
from heed.files import atomic_file, sha256, write_json, write_text
from heed.models import MODELS, name_of, signature
from heed.models.folder_config import read_config
from heed.models.signature import CONFIG
from heed.models.weight_hash import note_file

WEIGHTS = "model.safetensors"
MAX_TABLES = 1 << 27  # numbers of a model that its file does not hold: sinusoids of positions
Shapes = dict[str, tuple[int, ...]]
LAYERS = ("layers", "encoder_layers", "decoder_layers", "small_layers", "postnet_layers", "attention_2d")
DRAWN = ("normal_", "uniform_", "trunc_normal_", "kaiming_uniform_", "expect_")  # the last computes for long


def save(
    folder: Path,
    model: nn.Module,
    facts: Mapping[str, Any],
    texts: Mapping[str, str] = MappingProxyType({}),
    beside: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Write weights, `texts` by file name, and config.json with `facts` as plain entries; returns its content.
    `beside` are hashes of other files that belong to the model. When an existing model is replaced, config.json has
    the hashes of both until all files are replaced: so after a kill, or for a concurrent reader, the model is
    complete.
    """
    folder.mkdir(parents=True, exist_ok=True)
    check_finite(model.state_dict(), folder / WEIGHTS)
    every = {"model": {"name": name_of(model), **asdict(model.config)}, **facts}
    with atomic_file(folder / WEIGHTS) as part:
        _save_on_cpu(model.state_dict(), part)
        own = {name: hashlib.sha256(text.encode("utf-8")).hexdigest() for name, text in texts.items()}
        every["sha256"] = {WEIGHTS: sha256(part), **own, **beside}
        there = [name for name in (WEIGHTS, *texts) if (folder / name).is_file()]
        for name in texts.keys() - {*there}:  # until config.json states one, it does not count
            write_text(folder / name, texts[name])
        if there:
            old = {f"{name} before": sha256(folder / name) for name in there}
            write_json(folder / CONFIG, signature.signed({**every, "sha256": every["sha256"] | old}))
        for name in texts.keys() & {*there}:
            write_text(folder / name, texts[name])
    every = signature.signed(every)
    write_json(folder / CONFIG, every)
    return every


def load(folder: Path) -> nn.Module:
    """The model of a folder, in evaluation mode."""
    facts = read_config(folder)
    values = dict(facts.get("model", {}))
    name = values.pop("name", None)
    if name not in MODELS:
        raise ValueError(f"{folder / CONFIG}: model.name is {name!r}; heed has {', '.join(MODELS)}")
    system = MODELS[name]
    where = f"{folder / CONFIG}: model."
    try:
        config = read(system.config, values, where)
    except ValueError as error:
        raise ValueError(where + str(error).removeprefix(where)) from error
    held = weight_shapes(folder / WEIGHTS)
    check_layers(config, len(held), where)
    compare(outline(system.model, config, where), held, folder / WEIGHTS)
    with _LeftOut(*DRAWN):  # every weight comes from the file
        model = system.model(config)
    digest = _verified(folder, lambda weights: put(model, weights, folder / WEIGHTS))[1]
    if digest is not None:
        note_file(model, digest)
    return model.eval()


class _LeftOut(TorchFunctionMode):
    """Skips functions that change a tensor in place. Random draws become zero: trunc_normal_ draws until all values
    fit.
    """

    def __init__(self, *names: str):
        super().__init__()
        self.names = names

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in self.names:
            own = kwargs["tensor"] if "tensor" in kwargs else args[0]
            with torch.no_grad():
                return own.zero_() if name in DRAWN else own
        return func(*args, **kwargs)


def outline(model: Callable[[Any], nn.Module], config: Any, where: str = "") -> Shapes:
    """The shapes of the weights of a model with this config. Nothing of their size is allocated."""
    try:
        # on the meta device, div_ imports torch's compiler, which takes seconds
        with torch.device("meta"), _LeftOut(*DRAWN, "div_"):
            empty = model(config)
    except (RuntimeError, TypeError, ArithmeticError) as error:  # such as sizes below 0 or beyond 64 bits
        why = next(iter(str(error).splitlines()), "")  # then comes a stack of C++
        raise ValueError(f"{where}no model can be built with these settings ({why})") from error
    except ValueError as error:
        raise ValueError(f"{where}{error}") from error
    own = empty.state_dict()
    tables = sum(table.numel() for name, table in empty.named_buffers() if name not in own)
    if tables > MAX_TABLES:
        raise ValueError(
            f"{where}max_length is {config.max_length}: the position table would have {tables:,} numbers, and the "
            f"limit is {MAX_TABLES:,}"
        )
    return shapes(own)


def check_layers(config: Any, weights: int, where: str = "") -> None:
    """Refuse more layers than there are weights: even the outline of a thousand layers takes seconds."""
    for name in LAYERS if not hasattr(config, "groups") else ():  # layers of a group share their weights
        if (layers := getattr(config, name, 0)) > weights:
            raise ValueError(
                f"{where}{name} is {layers}, but there are only {weights} weights: it belongs to another model"
            )


def compare(own: Shapes, held: Shapes, path: Path) -> None:
    """Refuse a file whose weights do not match a model by name and shape."""
    unknown, missing = sorted(set(held) - set(own)), sorted(set(own) - set(held))
    if unknown:
        raise ValueError(
            f"{path} holds {some(unknown)}, which this model does not have: do they belong to another model?"
        )
    if missing:
        raise ValueError(f"{path} lacks {some(missing)}: it belongs to another model, or is incomplete")
    for name, shape in held.items():
        if shape != own[name]:
            raise ValueError(f"{path}: {name} has shape {shape}, but according to {CONFIG} it should be {own[name]}")


def shapes(weights: Mapping[str, Tensor]) -> Shapes:
    return {name: tuple(weight.shape) for name, weight in weights.items()}


def put(model: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Load exactly these weights into a model."""
    compare(shapes(model.state_dict()), shapes(weights), path)
    model.load_state_dict(weights)


def check_finite(weights: Mapping[str, Tensor], path: Path) -> None:
    """Refuse non-finite weights, by name."""
    for name, weight in weights.items():
        # a sum is cheap, and finite unless a weight is not or all are huge
        if weight.is_floating_point() and not weight.sum().isfinite() and not weight.isfinite().all():
            raise ValueError(
                f"{path}: {name} has weights that are not finite: it is damaged, or training diverged; use another"
            )


def read_verified(folder: Path) -> dict[str, Tensor]:
    """The weights of a model folder, verified against config.json (earlier versions state no hash)."""
    return _verified(folder, lambda weights: None)[0]


def _verified(
    folder: Path, use: Callable[[dict[str, Tensor]], None], again: bool = True
) -> tuple[dict[str, Tensor], str | None]:
    """Verified weights, and the hash of their file; None if another process has replaced it meanwhile. `use` gets
    the weights before the hash is compared, since its errors about weights that do not fit are more helpful.
    """
    before = _stamp(folder / WEIGHTS)
    use(weights := read_weights(folder / WEIGHTS))
    own, facts = sha256(folder / WEIGHTS), read_config(folder)
    stated = facts.get("sha256", {})
    if stated and own not in stated.values():
        if again:  # another process may have replaced the model just now
            return _verified(folder, use, again=False)
        raise ValueError(
            f"{folder / WEIGHTS} is damaged or belongs to another model: its hash does not match {CONFIG}; copy both "
            f"again, or remove sha256 from {CONFIG} if you changed the weights yourself"
        )
    signature.check(folder / CONFIG, facts)
    check_finite(weights, folder / WEIGHTS)
    return weights, own if _stamp(folder / WEIGHTS) == before else None


def _stamp(path: Path) -> tuple[int, int, int]:
    _check_present(path)
    own = path.stat()
    return own.st_ino, own.st_size, own.st_mtime_ns


def weight_shapes(path: Path) -> Shapes:
    """The shapes stated in the header of a weights file."""
    _check_present(path)
    try:
        with safe_open(path, "pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 (no dict)
    except SafetensorError as error:
        raise _damaged(path, error) from error


def read_weights(path: Path) -> dict[str, Tensor]:
    _check_present(path)
    try:
        return load_file(path)
    except SafetensorError as error:
        raise _damaged(path, error) from error


def _check_present(path: Path) -> None:
    if not path.is_file():
        raise ValueError(f"{path.parent} has no weights: {path.name} is missing")


def _damaged(path: Path, error: SafetensorError) -> ValueError:
    return ValueError(f"{path} is damaged or truncated ({error}): copy it again")


def write_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    with atomic_file(path) as part:
        _save_on_cpu(weights, part)


def _save_on_cpu(weights: Mapping[str, Tensor], path: Path) -> None:
    save_weights({name: weight.detach().cpu().contiguous() for name, weight in weights.items()}, path)


def save_weights(weights: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write weights with the permissions of other files: safetensors (0.8) makes them readable for the owner only."""
    path.unlink(missing_ok=True)
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file(dict(weights), path, metadata=metadata)
    except SafetensorError as error:
        path.unlink(missing_ok=True)
        raise ValueError(
            f"{path} could not be written: {error}; free some disk space, or choose another place"
        ) from error
    path.chmod(mode)


def some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
