"""Tensors of which each process may hold a part (torch's DTensor), and tensors that are whole, alike."""

from collections.abc import Mapping

from torch import Tensor


def is_shared(tensor: Tensor) -> bool:
    """Whether this process holds a part of it alone; asked without loading torch's tensors of many processes."""
    return hasattr(tensor, "full_tensor")


def local(tensor: Tensor) -> Tensor:
    """What this process holds of it."""
    return tensor.to_local() if is_shared(tensor) else tensor


def whole(tensor: Tensor) -> Tensor:
    """All of it. Every process must ask, in the same order."""
    return tensor.full_tensor() if is_shared(tensor) else tensor


def gathered(tensors: Mapping[str, Tensor], keep: bool) -> dict[str, Tensor]:
    """All of each; what was in parts comes one by one, and leaves the device at once. Who does not `keep` gets nothing."""
    kept = {}
    for name, tensor in tensors.items():
        full = whole(tensor.detach())
        if keep:
            kept[name] = full.cpu() if is_shared(tensor) else full
    return kept


def like(full: Tensor, other: Tensor) -> Tensor:
    """Of a tensor that is here whole, what this process should hold: laid out as `other` of the same shape is."""
    if not is_shared(other) or full.shape != other.shape:
        return full
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(full.to(other.device), other.device_mesh, other.placements, src_data_rank=None)
