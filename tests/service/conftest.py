"""The small translator of the products' tests."""

from tests.products.conftest import make, one_thread, pairs, texts, translator, vocabulary  # noqa: F401 (fixtures)
