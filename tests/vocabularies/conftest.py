"""The small corpus of the data's tests."""

from tests.data.conftest import learned, lines, pairs  # noqa: F401 (fixtures)
