"""How long a validation takes, from a part of it."""

from types import SimpleNamespace

import pytest

from heed.data.readers import Line
from heed.decoding.config import DecodingConfig
from heed.runs import trial
from heed.tasks.translation import DirectionsValidation, TranslationValidation
from tests.convert.small import ENDS, package, pairs, speaking


class Parts:
    """A validation whose parts are numbers of texts."""

    def __init__(self, size):
        self.size = size

    def part(self, count):
        return count


@pytest.mark.parametrize(("size", "batch"), [(1000, 0.0), (1000, 3.0), (100, 0.5), (32, 0.5), (20, 0.5)])
def test_a_validation_is_estimated_from_two_parts_of_it(size, batch):
    """A batch takes `batch` seconds, and each of its texts 0.02."""
    now, done = [0.0], []

    def validate(count):
        now[0] += batch + 0.02 * count + (0 if done else 100)  # the first one compiles kernels
        done.append(count)

    assert trial.seconds(Parts(size), validate, lambda: now[0]) == pytest.approx(batch + 0.02 * size)
    assert done == [min(32, size)] * 2 + [min(128, size)] * (size > 32)


def test_a_busy_machine_does_not_make_the_estimate_absurd():
    """If the second part took longer for other reasons, or the first one did."""
    for took, estimate in (([0.0, 0.1, 12.8], 100.0), ([0.0, 9.0, 2.0], 2.0)):
        now, times = [0.0], iter(took)

        def validate(count):
            now[0] += next(times)  # noqa: B023 (called at once)

        assert trial.seconds(Parts(1000), validate, lambda: now[0]) == pytest.approx(estimate)  # noqa: B023


@pytest.mark.parametrize("known", [{"is_short": False}, {"validation": 5.0}, {"parts": object()}])
def test_nothing_is_measured_where_nobody_needs_it(known):
    ending = SimpleNamespace(**{"is_short": True, "validation": 0.0, **known})
    before = dict(vars(ending))
    trial.measure(SimpleNamespace(ending=ending, validation=known.get("parts", Parts(10))))
    assert vars(ending) == before


def test_a_part_of_a_validation_is_one_of_fewer_texts():
    own = speaking(package("one", tied="none", norm="pre", output_bias=True), ENDS["one"])
    own.model.float()
    vocabularies = tuple(own.processors.values())
    search = DecodingConfig(beam=1, max_length=16)
    lines = [Line(source, target, None) for source, target in pairs()[:9]]
    options = {"search": search, "max_source": None, "budget": 500, "samples": 2}
    whole = TranslationValidation(lines, vocabularies, **options)
    part, other = whole.part(3), TranslationValidation([lines[row] for row in (0, 4, 8)], vocabularies, **options)
    found, same = part.run(own.model), other.run(own.model)
    assert part.size == 3 and found.scores == same.scores and found.outputs == same.outputs
    assert whole.size == 9 and len(whole.run(own.model).outputs) == 9, "the whole is what it was"
    both = DirectionsValidation({"a": whole, "b": other}).part(4)
    assert both.size == 4 and isinstance(both, trial.HasParts)
