"""Heed: from two text files to a translator you can inspect."""

from heed.version import __version__ as __version__


def load(folders, device: str = "auto", engine: str = "auto"):
    """Load the translator in a run or model folder; several folders form an ensemble. `engine`: auto, torch or
    ctranslate2.
    """
    from heed.loading import load

    return load(folders, device, engine)
