"""The small translator of the products' tests."""

from tests.products.conftest import make, one_thread, pairs, subwords, texts, translator  # noqa: F401 (fixtures)
