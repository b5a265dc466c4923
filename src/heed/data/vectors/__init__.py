"""Word vectors: out of files and into them, and which words are near which."""

from heed.data.vectors.config import VectorsConfig
from heed.data.vectors.reading import Vectors, blocks, read
from heed.data.vectors.writing import write

__all__ = ["Vectors", "VectorsConfig", "blocks", "read", "write"]
