"""Where what is made once is kept: prepared corpora, and models as another engine reads them."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """$HEED_CACHE, or ~/.cache/heed."""
    return Path(os.environ.get("HEED_CACHE") or Path.home() / ".cache" / "heed")
