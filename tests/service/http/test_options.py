"""The options of a request: a glossary means the same wherever it is parsed."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from heed.service.http.limits import Refusal
from heed.service.http.options import MAX_TERMS, SHORT_GLOSSARY, read_glossary


class Counting(ThreadPoolExecutor):
    """A pool that counts what it is given."""

    jobs = 0

    def submit(self, *args, **kwargs):
        self.jobs += 1
        return super().submit(*args, **kwargs)


@pytest.mark.parametrize(("count", "jobs"), [(0, 0), (1, 0), (400, 0), (401, 1)])
@pytest.mark.parametrize("kind", ["table", "text", "names", "lines"])
def test_a_long_glossary_is_parsed_where_it_blocks_no_other_request(count, jobs, kind):
    """Each term has ten characters with its translation, so that 400 are just short."""
    assert SHORT_GLOSSARY == 4_000
    terms, names = {f"term{n:04}": "xy" for n in range(count)}, [f"{n:010}" for n in range(count)]
    given = {
        "table": (terms, None),
        "text": (json.dumps(terms).ljust(10 * count), None),
        "names": (None, names),
        "lines": (None, "\n".join(names)),
    }[kind]
    jobs = jobs or (count == 400 and kind in ("text", "lines"))  # which have quotes or line ends too
    with Counting(1) as pool:
        found = asyncio.run(read_glossary(pool, *given))
        assert pool.jobs == jobs
    assert (found.terms, found.keep) == ((terms, ()) if kind in ("table", "text") else ({}, tuple(names)))


@pytest.mark.parametrize("length", [1, 10])
def test_too_many_terms_are_refused_wherever_they_are_counted(length):
    names = ["x" * length] * (MAX_TERMS + 1)
    with Counting(1) as pool, pytest.raises(Refusal, match="keep has 5,001 terms; the limit per request is 5,000"):
        asyncio.run(read_glossary(pool, None, names))
