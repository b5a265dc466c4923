"""When a run ends, and how its learning rate falls before."""

import dataclasses

import pytest

from heed.runs.ending import Ending, can_extend, cooled, reopened
from heed.runs.validation_history import ValidationHistory
from heed.training.config import TrainingConfig


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self):
        return self.now


def drive(config, seconds_a_step=1.0, history=None, stop_at=None, slow_from=None):
    """Run steps until the end; the history, and the rate factor of each step."""
    clock, history = Clock(), history or ValidationHistory()
    ending = Ending(config, 0.0, clock)
    factors, step = {}, 0
    while not ending.is_over(step, history):
        step += 1
        factors[step] = cooled(lambda s: 1.0, lambda: history)(step)  # noqa: B023 (called at once)
        clock.now += seconds_a_step * (3 if slow_from and step >= slow_from else 1)
        if step == stop_at:
            history = dataclasses.replace(history, stopped=True)
        history = ending.update(step, history)
    return history, factors


def test_without_a_cooldown_a_run_has_its_steps_and_its_rate():
    history, factors = drive(TrainingConfig(steps=40))
    assert history == ValidationHistory() and factors == dict.fromkeys(range(1, 41), 1.0)


def test_in_the_last_share_of_the_steps_the_rate_falls_to_zero():
    history, factors = drive(TrainingConfig(steps=40, cooldown=0.25))
    assert (history.ends_at, history.cooldown_from, history.ended_by) == (40, 30, "steps")
    assert all(factors[step] == 1.0 for step in range(1, 31))
    assert [factors[step] for step in range(31, 41)] == pytest.approx([k / 11 for k in range(10, 0, -1)])


def test_when_validation_stops_improving_the_cooldown_begins():
    history, factors = drive(TrainingConfig(steps=1000, cooldown=0.25), stop_at=60)
    assert (history.ends_at, history.cooldown_from, history.ended_by) == (80, 60, "patience")
    assert len(factors) == 80, "a quarter of the run is its cool-down"


def test_without_a_cooldown_it_ends_at_once():
    _, factors = drive(TrainingConfig(steps=1000), stop_at=60)
    assert len(factors) == 60


@pytest.mark.parametrize("pace", [0.5, 2.0])
def test_a_run_ends_within_its_time(pace):
    history, factors = drive(TrainingConfig(steps=10_000, cooldown=0.25, time="200s"), pace)
    assert history.ended_by == "time" and history.budget == 200
    assert 190 <= len(factors) * pace <= 200
    assert min(factors.values()) < 0.05, "and its rate has fallen"
    assert 0.7 < history.cooldown_from / history.ends_at < 0.8


def test_steps_that_become_slower_do_not_make_it_late():
    _, factors = drive(TrainingConfig(steps=10_000, cooldown=0.25, time="200s"), slow_from=170)
    assert 169 + 3 * (len(factors) - 169) <= 205


def test_imports_validations_and_the_end_are_within_the_time():
    """Four seconds of imports, a validation of 1.5 seconds every 50 steps, and three more and a report at the end."""
    clock, history, step = Clock(), ValidationHistory(), 0
    config = TrainingConfig(steps=10_000, cooldown=0.25, time="60s", valid_every=50)
    ending = Ending(config, 0.0, clock, finishing=lambda validation: 8 + 3 * validation)
    clock.now = 4
    while not ending.is_over(step, history):
        step += 1
        clock.now += 0.1
        if step % 50 == 0 or step >= ending.last_step(history):
            clock.now += 1.5
            ending.pause(1.5)
        history = ending.update(step, history)
    clock.now += 8 + 3 * 1.5
    assert history.ended_by == "time"
    assert 57 < clock.now <= 60 + 2 * 0.1, "at most a step or two late"


def test_validations_count_as_time():
    clock = Clock()
    ending = Ending(TrainingConfig(time="100s"), 0.0, clock)
    history = ValidationHistory()
    for step in range(1, 21):
        clock.now += 1
        history = ending.update(step, history)
    clock.now += 30
    ending.pause(30.0)
    assert ending.seconds_per_step(20) == pytest.approx(1.0), "of steps alone"
    assert ending.spent() == 50


def test_the_expected_end_follows_the_pace():
    clock, history = Clock(), ValidationHistory()
    ending = Ending(TrainingConfig(steps=100_000, time="1000s"), 0.0, clock)
    assert ending.expected_last_step(0, history) is None, "not the bound"
    for step in range(1, 51):
        clock.now += 2
        history = ending.update(step, history)
    assert 490 <= ending.expected_last_step(50, history) <= 500


def test_a_decided_end_stays_when_a_run_is_resumed():
    """Whatever the clock says then."""
    config = TrainingConfig(steps=1000, cooldown=0.25)
    whole, factors = drive(config, stop_at=60)
    ending = Ending(config, 0.0, Clock())
    ending.resume(whole)
    assert ending.last_step(whole) == 80 and not ending.is_over(70, whole) and ending.is_over(80, whole)
    assert cooled(lambda s: 1.0, lambda: whole)(70) == factors[70]


def test_more_time_is_counted_from_what_was_spent():
    ending = Ending(TrainingConfig(time="+1h"), 0.0, Clock())
    ending.resume(ValidationHistory(seconds=500.0))
    assert ending.budget == 4100


@pytest.mark.parametrize(
    ("ended", "settings", "extends"),
    [
        ({"ended_by": "steps"}, {"steps": 80}, False),
        ({"ended_by": "steps"}, {"steps": 120}, True),
        ({"ended_by": "time", "budget": 600.0}, {"time": "10m"}, False),
        ({"ended_by": "time", "budget": 600.0}, {"time": "20m"}, True),
        ({"ended_by": "time", "budget": 600.0}, {"time": "+5m"}, True),
        ({"ended_by": "time", "budget": 600.0}, {}, True),
        ({"ended_by": "patience", "waited": 6}, {"patience": 6}, False),
        ({"ended_by": "patience", "waited": 6}, {"patience": 12}, True),
        ({"ended_by": "patience", "waited": 6}, {"patience": 6, "time": "+1h"}, True),
    ],
)
def test_what_extends_a_run_that_had_come_to_its_end(ended, settings, extends):
    history = ValidationHistory(ends_at=80, cooldown_from=60, **ended)
    assert can_extend(TrainingConfig(**settings), history) == extends
    again = ValidationHistory(**reopened(dataclasses.asdict(history), history))
    assert again.ends_at is None and not again.stopped and not can_extend(TrainingConfig(**settings), again)


def test_an_extended_run_remembers_the_model_and_the_validation_before():
    """So that a worse model does not replace it, and time for validations is reserved from the first step on."""
    ended = ValidationHistory(best=[[0.6, 80], [0.4, 60]], ends_at=80, cooldown_from=60, validation=7.0)
    again = ValidationHistory(**reopened({"best": [[0.4, 60]]}, ended))
    assert again.add(70, 0.5, patience=6) and again.best_model() == [0.6, 80]
    assert again.add(90, 0.7, patience=6) and again.best_model() == [0.7, 90]
    ending = Ending(TrainingConfig(time="+1h"), 0.0, Clock())
    ending.resume(again)
    assert ending.validation == 7.0
    assert ValidationHistory(**reopened({}, ValidationHistory())).finished is None


def test_how_long_it_takes_is_told_when_steps_were_timed():
    clock, history = Clock(), ValidationHistory()
    ending, said = Ending(TrainingConfig(steps=100, valid_every=50), 0.0, clock), {}
    for step in range(1, 51):
        clock.now += 30 if step == 1 else 0.5  # the first step compiles: it tells nothing of the others
        ending.update(step, history)
        said[step] = ending.expectation(step, history)
    assert [step for step in said if said[step]] == [12], "once"
    assert said[12] == "about 44 s more and the validations, at 2 steps/s"
    clock.now += 10
    ending.pause(10)
    assert ending.seconds_left(50, history) == pytest.approx(25 + 10 + 10)
    assert not ending.expectation(50, history), "it was right"
    clock.now += 200
    assert ending.expectation(51, history).startswith("about 6 min more, at 0.1"), "the last steps were slow"


def test_steps_are_timed_where_only_some_are_told():
    """Several processes agree on the end at each log line only."""
    clock, history = Clock(), ValidationHistory()
    ending = Ending(TrainingConfig(steps=1000, time="100s"), 0.0, clock)
    for step in range(1, 61):
        clock.now += 1
        if step % 20 == 0:
            ending.update(step, history)
    assert ending.seconds_per_step(60) == pytest.approx(1.0)
    assert 90 <= ending.expected_last_step(60, history) <= 100


def slow_start(
    config: TrainingConfig, until: int, clock: Clock, ending: Ending
) -> tuple[ValidationHistory, dict[int, str]]:
    """Steps of one second up to `until`, then a hundred per second, to the end; what is expected after each step."""
    history, step, said = ValidationHistory(), 0, {}
    while not ending.is_over(step, history):
        step += 1
        clock.now += 1 if step <= until else 0.01
        history = ending.update(step, history)
        said[step] = ending.expectation(step, history)
    return history, said


def test_the_expected_time_is_corrected_after_a_slow_start():
    """As on a GPU whose kernels are compiled by the first steps."""
    config, clock = TrainingConfig(steps=4000), Clock()
    _, said = slow_start(config, 20, clock, Ending(config, 0.0, clock))
    said = {step: words for step, words in said.items() if words}
    assert next(iter(said.values())) == "about 1 h 7 min more and the validations, at 1 steps/s"
    assert 2 < len(said) < 9 and max(said) < 50, "whenever it was wrong by more than a factor of two"
    assert 38 <= int(list(said.values())[-1].split()[1]) <= 60


def test_a_run_uses_its_time_in_spite_of_a_slow_start():
    config, clock = TrainingConfig(steps=100_000, cooldown=0.25, time="60s"), Clock()
    history, _ = slow_start(config, 25, clock, Ending(config, 0.0, clock))
    assert history.ended_by == "time" and 55 < clock.now <= 60
    assert 0.2 < (history.ends_at - history.cooldown_from) * 0.01 / 60 < 0.3, "a quarter of the time for the cool-down"
