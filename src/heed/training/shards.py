"""Common functions for sharded tensors (torch's DTensor, FSDP2) and ordinary ones."""

from collections.abc import Mapping

from torch import Tensor


def is_sharded(tensor: Tensor) -> bool:
    """Whether this process holds only a shard; tested by attribute, so that torch.distributed is not imported."""
    return hasattr(tensor, "full_tensor")


def local(tensor: Tensor) -> Tensor:
    """The shard of this process, or the tensor itself."""
    return tensor.to_local() if is_sharded(tensor) else tensor


def full(tensor: Tensor) -> Tensor:
    """The full tensor. A collective call: every process must make it, in the same order."""
    return tensor.full_tensor() if is_sharded(tensor) else tensor


def gather(tensors: Mapping[str, Tensor], keep: bool) -> dict[str, Tensor]:
    """All tensors in full, sharded ones moved to the CPU one by one to save device memory; empty unless `keep`."""
    kept = {}
    for name, tensor in tensors.items():
        gathered = full(tensor.detach())
        if keep:
            kept[name] = gathered.cpu() if is_sharded(tensor) else gathered
    return kept


def shard_like(tensor: Tensor, other: Tensor) -> Tensor:
    """Shard a full tensor like `other`; unchanged if `other` is not sharded or has another shape."""
    if not is_sharded(other) or tensor.shape != other.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor.to(other.device), other.device_mesh, other.placements, src_data_rank=None)
