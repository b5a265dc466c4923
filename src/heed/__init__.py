"""Heed: from two text files to a translator you can look into."""

__version__ = "0.1.0"


def load(folders, device: str = "auto", engine: str = "auto"):
    """The translator of a run folder or a model folder; of several, an ensemble. `engine`: auto, torch or ctranslate2."""
    from heed.loading import load

    return load(folders, device, engine)
