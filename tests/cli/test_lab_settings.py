"""The options of a lab are the parameters of its measurement, with the same defaults."""

import importlib
import inspect

import pytest

from heed.cli.lab_settings import LABS, SETTINGS


@pytest.mark.parametrize("name", [name for name in LABS if name != "bottleneck"])
def test_options_are_parameters_with_the_same_defaults(name):
    parameters = inspect.signature(importlib.import_module(f"heed.lab.experiments.{name}").measure).parameters
    for option, settings in SETTINGS[name].items():
        if option in ("--model", "--device"):  # for the command: it reads positions from one, and measures on the other
            continue
        own = parameters[option.removeprefix("--")]
        assert settings["default"] == own.default, option
        assert f"{own.default:,}" in settings["help"] or f"{own.default:g}" in settings["help"] or not own.default
