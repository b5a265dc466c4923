"""Word vectors: reading and writing files of them, and the nearest neighbours of words."""

from heed.data.vectors.config import VectorsConfig
from heed.data.vectors.reading import Vectors, blocks, read
from heed.data.vectors.writing import write

__all__ = ["Vectors", "VectorsConfig", "blocks", "read", "write"]
