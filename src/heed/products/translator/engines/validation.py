"""The engines of validations during training. What a GPU search has captured is kept for the next validation."""

import warnings
from collections.abc import Callable

import torch

from heed.decoding.config import DecodingConfig
from heed.decoding.cuda.search import SearchRunner
from heed.products.translator.engines.cuda import CudaEngine, Shared
from heed.products.translator.engines.engine import Engine, TorchEngine
from heed.products.translator.model_bundle import Hypotheses, ModelBundle, Sentences

EngineMaker = Callable[[ModelBundle], list[Engine]]
DTYPES = torch.bfloat16, torch.float32  # that the kernels support


def only_torch(bundle: ModelBundle) -> list[Engine]:
    return [TorchEngine(bundle)]


class ValidationEngines:
    """Makes the engines of each validation. It keeps CUDA graphs and their memory, but no model: a search begins with
    a copy of the model's current weights to where the graphs read them.
    """

    def __init__(self):
        self.shared, self.failed = Shared(), False

    @property
    def fast(self) -> bool:
        """Whether the last validation was by the GPU search."""
        return self.shared.machine is not None

    def __call__(self, bundle: ModelBundle) -> list[Engine]:
        plain, dtype = TorchEngine(bundle), computing_dtype(bundle)
        return [plain] if self.failed or dtype not in DTYPES else [ValidationEngine(bundle, dtype, self), plain]


class ValidationEngine(CudaEngine):
    """The GPU search with little memory, since training keeps the rest. If it fails, the plain search is used from
    then on: a run must not end because of it.
    """

    overlaps = False  # `search` does more
    total_share = 1 / 16

    def __init__(self, bundle: ModelBundle, dtype: torch.dtype, owner: ValidationEngines):
        super().__init__(bundle, dtype, owner.shared)
        self.owner = owner

    def takes(self, config: DecodingConfig, prefixes: Sentences) -> bool:
        self.shared.snapshot = None  # so that the weights are copied in any case
        try:
            return not self.owner.failed and super().takes(config, prefixes)
        except Exception as error:
            self._give_up(error)
            return False

    def search(self, sources: Sentences, config: DecodingConfig, prefixes: Sentences, batch_tokens: int) -> Hypotheses:
        try:
            return super().search(sources, config, prefixes, batch_tokens)
        except Exception as error:
            self._give_up(error)
        finally:
            self.shared.snapshot = None  # which refers to the model
        return TorchEngine(self.bundle).search(sources, config, prefixes, batch_tokens)

    def _build(self) -> SearchRunner | None:
        machine = super()._build()
        self.owner.failed = machine is None
        return machine

    def _give_up(self, error: Exception) -> None:
        reason = str(error).strip().split("\n")[0]
        warnings.warn(f"the fast search on the GPU failed, validating with the standard search: {reason}", stacklevel=4)
        self.owner.failed, self.shared.machine = True, None


def computing_dtype(bundle: ModelBundle) -> torch.dtype:
    """The dtype of matrix products in this context."""
    device = bundle.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return next(bundle.model.parameters()).dtype
