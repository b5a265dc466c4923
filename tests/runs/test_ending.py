"""When a run ends, and how its learning rate falls before."""

import dataclasses

import pytest

from heed.runs.ending import SHORT, Ending, can_extend, cooled, reopened
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
    again = ValidationHistory(**reopened(dataclasses.asdict(history), history, 80))
    assert again.ends_at is None and not again.stopped and not can_extend(TrainingConfig(**settings), again)


def test_an_extended_run_remembers_the_model_and_the_validation_before():
    """So that a worse model does not replace it, and time for validations is reserved from the first step on."""
    ended = ValidationHistory(best=[[0.6, 80], [0.4, 60]], ends_at=80, cooldown_from=60, validation=7.0)
    again = ValidationHistory(**reopened({"best": [[0.4, 60]]}, ended, 80))
    assert again.add(70, 0.5, patience=6) and again.best_model() == [0.6, 80]
    assert again.add(90, 0.7, patience=6) and again.best_model() == [0.7, 90]
    ending = Ending(TrainingConfig(time="+1h"), 0.0, Clock())
    ending.resume(again)
    assert ending.validation == 7.0
    assert ValidationHistory(**reopened({}, ValidationHistory(), 0)).finished is None


def test_how_long_it_takes_is_told_when_steps_were_timed():
    clock, history = Clock(), ValidationHistory()
    ending, said = Ending(TrainingConfig(steps=100, valid_every=50), 0.0, clock), {}
    for step in range(1, 51):
        clock.now += 30 if step == 1 else 0.5  # the first step compiles: it tells nothing of the others
        ending.update(step, history)
        said[step] = ending.expectation(step, history)
    assert [step for step in said if said[step]] == [13], "once"
    assert said[13] == "about 44 s more and the validations, at 2 steps/s"
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
    (first, second), words = said, list(said.values())
    assert (first, words[0]) == (9, "about 1 h 7 min more and the validations, at 1 steps/s")
    assert 200 < second < 600 and 33 <= int(words[1].split()[1]) <= 38, (
        "once the steps after it are as fast as each other"
    )


def test_a_speed_that_changes_is_not_told():
    """A GPU is given steps ahead, which takes no time, and stands still while another kernel is compiled."""
    clock, history, said = Clock(), ValidationHistory(), {}
    ending = Ending(TrainingConfig(steps=8000), 0.0, clock)
    for step in range(1, 2001):
        clock.now += 4 if step < 8 else 0.007 if step < 90 else 17 if step == 110 else 0.031
        history = ending.update(step, history)
        if words := ending.expectation(step, history):
            said[step] = words
    assert list(said.values()) == ["about 4 min more and the validations, at 32.3 steps/s"], said


def test_a_run_uses_its_time_in_spite_of_a_slow_start():
    config, clock = TrainingConfig(steps=100_000, cooldown=0.25, time="60s"), Clock()
    history, _ = slow_start(config, 25, clock, Ending(config, 0.0, clock))
    assert history.ended_by == "time" and 55 < clock.now <= 60
    assert 0.2 < (history.ends_at - history.cooldown_from) * 0.01 / 60 < 0.3, "a quarter of the time for the cool-down"


def extended(time: str, seconds_a_step: float = 1.0, start: float = 15.0, pace: float = 1.0):
    """A run of 19 steps that is extended from step 12, before its cool-down; the history, the rates and the seconds."""
    config, clock = TrainingConfig(steps=10_000, cooldown=0.25, time=time, valid_every=20), Clock()
    ended = ValidationHistory(
        ends_at=19, cooldown_from=12, ended_by="time", seconds=60.0, validation=3.0, pace=pace, best=[[0.5, 19]]
    )
    record = dataclasses.asdict(ended) | {"seconds": 50.0, "best": []}
    history, step, factors = ValidationHistory(**reopened(record, ended, 19)), 12, {}
    ending = Ending(config, 0.0, clock)
    ending.resume(history)
    clock.now += start
    said = ending.too_short(step, history)
    while not ending.is_over(step, history):
        step += 1
        factors[step] = cooled(lambda s: 1.0, lambda: history)(step)  # noqa: B023 (called at once)
        clock.now += seconds_a_step
        history = ending.update(step, history)
    return history, factors, clock.now, said


@pytest.mark.parametrize("time", ["+1s", "+16s", "+20s", "+30s"])
def test_an_extension_ends_later_than_the_run_did_whatever_its_time(time):
    history, factors, _, said = extended(time)
    assert max(factors) == history.ends_at and (history.ended_by, history.ends_at) == ("time", 20)
    assert history.cooldown_from == 15 and factors[20] < factors[16] < 1.0, "annealed like any other"
    assert said == (
        f"{time[1:-1]} s are too short to train further than before, to step 20: with the validation and the end that "
        "takes about 14 s here. The run goes on until then; --time +1m would be enough."
    ) or (time == "+30s" and not said)


def test_an_extension_with_enough_time_uses_it():
    history, _, seconds, said = extended("+200s")
    assert not said and 185 < seconds + 3 + 3.5 <= 201 and history.ends_at > 150
    assert 0.2 < 1 - history.cooldown_from / history.ends_at < 0.33


def test_an_extension_whose_steps_become_slow_does_not_end_before_the_last_run():
    history, *_ = extended("+45s", seconds_a_step=9.0)
    assert history.ends_at == 20


def test_a_late_short_run_ends_where_it_was_validated_and_is_not_validated_again():
    config, clock = TrainingConfig(steps=10_000, cooldown=0.25, time="500s", valid_every=10), Clock()
    ending = Ending(config, 0.0, clock)
    history = ValidationHistory(ends_at=60, cooldown_from=30, ended_by="time")
    clock.now = 999.0
    assert ending.update(50, history).ends_at == 51, "its weights were not"
    history.add(50, 0.5, patience=6)
    assert ending.update(50, history).ends_at == 50 and ending.update(51, history).ends_at == 52


def test_a_short_budget_is_validated_once_in_its_cooldown():
    history = ValidationHistory(ends_at=47, cooldown_from=30, ended_by="time")
    for time, every in ((f"{SHORT - 1:.0f}s", [47]), (f"{SHORT:.0f}s", [40, 47])):
        ending = Ending(TrainingConfig(time=time, valid_every=10), 0.0, Clock())
        assert [step for step in range(31, 48) if ending.validates(step, history)] == every
        assert [step for step in range(1, 31) if ending.validates(step, ValidationHistory())] == [10, 20, 30]


def test_options_get_what_a_short_budget_has_left():
    clock = Clock()
    short, long, none = (Ending(TrainingConfig(time=time), 0.0, clock) for time in ("100s", "10m", None))
    clock.now = 70
    assert short.left_for_options(10) is None, "it did no step: what an earlier part of the run left undone is done"
    for ending in (short, long, none):
        ending.update(1, ValidationHistory())
    assert short.left_for_options(10) == 20 and short.left_for_options(40) == 0
    assert long.left_for_options(10) is None and none.left_for_options(10) is None
    extension = Ending(TrainingConfig(time="+1m"), 0.0, clock)
    extension.resume(ValidationHistory(seconds=5000.0))
    assert extension.is_short, "what was spent before is not its time"
    resumed = Ending(TrainingConfig(time="1h"), 0.0, clock)
    resumed.resume(ValidationHistory(seconds=3500.0))
    assert not resumed.is_short


@pytest.mark.parametrize(("time", "share"), [("60s", 0.25), ("600s", 0.26)])
def test_a_long_start_leaves_a_short_run_most_of_its_steps(time, share):
    """Its cool-down is a quarter of the steps, not of a time that is mostly over before the first one."""
    clock, history, step = Clock(), ValidationHistory(), 0
    ending = Ending(TrainingConfig(steps=10_000, cooldown=0.25, time=time, valid_every=10_000), 0.0, clock)
    clock.now = 30.0
    while not ending.is_over(step, history):
        step, clock.now = step + 1, clock.now + 0.1
        history = ending.update(step, history)
    assert (history.ends_at - history.cooldown_from) / history.ends_at == pytest.approx(share, abs=0.011)


def test_half_of_a_short_time_is_for_steps_even_if_the_run_is_late_then():
    clock, history, step = Clock(), ValidationHistory(), 0
    config = TrainingConfig(steps=10_000, cooldown=0.25, time="100s", valid_every=10_000)
    ending = Ending(config, 0.0, clock, finishing=lambda validation: 3 * validation)
    ending.validation, clock.now = 40.0, 20.0
    while not ending.is_over(step, history):
        step, clock.now = step + 1, clock.now + 0.1
        history = ending.update(step, history)
    assert 59.5 <= clock.now <= 60.5 and 0.2 < 1 - history.cooldown_from / step < 0.3


@pytest.mark.parametrize("time", [400, 800])
def test_the_cooldown_of_a_short_budget_is_planned_without_validations(time):
    """One of ten seconds every ten steps would take half of its time, as it does in a long one."""
    clock, history, step = Clock(), ValidationHistory(), 0
    ending = Ending(
        TrainingConfig(steps=10_000, cooldown=0.25, time=f"{time}s", valid_every=10), 0.0, clock, lambda _: 0
    )
    ending.validation = 10.0
    while history.ends_at is None:
        step, clock.now = step + 1, clock.now + 1
        history = ending.update(step, history)
    left = time - 10 - history.cooldown_from
    assert history.ends_at - history.cooldown_from == (left if time < SHORT else left // 2)
