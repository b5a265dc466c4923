"""make check-lowest and make wheel: what they decide without an environment."""

from bench import lowest, wheel


def test_a_bound_that_other_requirements_lift_is_named(monkeypatch):
    monkeypatch.setattr(lowest, "bounds", lambda: [("numpy", "2.0"), ("rich", "13.9.4"), ("absent", "1")])
    assert lowest.not_lowest("numpy==2.0.0\nrich==13.9.4 ; sys_platform == 'linux'\n") == []
    assert lowest.not_lowest("numpy==2.0.1\nrich==13.9.4\n") == ["numpy>=2.0 (it is 2.0.1)"]


def test_every_requirement_has_a_bound_to_try():
    found = dict(lowest.bounds())
    assert found["torch"] == "2.11" and found["huggingface-hub"] and found["pytest"]


def test_the_tests_of_the_lowest_versions_exist():
    assert all((lowest.ROOT / "tests" / name).exists() for name in lowest.TESTS)


def test_the_small_training_of_the_wheel_has_settings_that_exist():
    from heed.config import assignment
    from heed.runs import built_in, recipe

    changes = [assignment(text) for text in wheel.TINY if text != "--set"]
    assert recipe.read(built_in.path("phrasebook"), changes).training.steps == 4
