"""Metrics as Prometheus reads them."""

from heed.service.http.metrics import SECONDS, Histogram


def test_a_value_counts_in_every_bucket_from_its_own_on():
    """The edges up to ten seconds are those of Prometheus's own clients (DefBuckets)."""
    assert SECONDS == (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
    own = Histogram("waited", "seconds", SECONDS)
    for value in (0.004, 2.5, 2.6, 61.0):
        own.add(value)
    found = dict(line.rsplit(" ", 1) for line in own.lines())
    counts = [int(number) for name, number in found.items() if "_bucket" in name]
    assert counts == [1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 4]
