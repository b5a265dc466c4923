"""Heed: from two text files to a translator you can look into."""

from heed.version import __version__ as __version__


def load(folders, device: str = "auto", engine: str = "auto"):
    """The translator of a run folder or a model folder; of several, an ensemble. `engine`: auto, torch or ctranslate2."""
    from heed.loading import load

    return load(folders, device, engine)
