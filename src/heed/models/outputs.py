"""Outputs of a model that are no numbers: finite weights lead to them if some are far too large. Nothing here needs
torch.
"""

import math
from typing import Any

NOT_FINITE = "the outputs of the model are not finite: its weights are damaged, or its training diverged; use another"


def check_outputs(values: Any, infinite: bool = False) -> None:
    """Refuse outputs, in a tensor or an array, with NaN and, unless they may be `infinite`, with infinities."""
    if math.isfinite(values.sum().item()):  # which is cheap, and so unless an output is not or all are huge
        return
    wrong = values != values
    if bool((wrong if infinite else wrong | (abs(values) == math.inf)).any()):
        raise ValueError(NOT_FINITE)
