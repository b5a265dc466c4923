"""constraints.txt has every package that is needed, and pyproject.toml a lower bound for each."""

import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from bench.lock import FIXED, LOCK, OF_CUDA, PROJECT, locked
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

EXTRAS = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
DIRECT = [Requirement(line) for line in tomllib.loads(PROJECT.read_text("utf-8"))["project"]["dependencies"]]
DIRECT += [Requirement(line) for lines in EXTRAS.values() for line in lines]
NO_TEST = ("tensorboard", "docs", "ray", "spark")  # a fast test needs none of these
NOT_INSTALLED = {Requirement(line).name for extra in NO_TEST for line in EXTRAS[extra]}


def pins() -> dict[str, Requirement]:
    """What constraints.txt says, of this platform and Python."""
    lines = [line for line in LOCK.read_text("utf-8").splitlines() if not line.startswith("#")]
    return {one.name: one for one in map(Requirement, lines) if applies(one.marker)}


def applies(marker: Marker | None, extras: frozenset[str] = frozenset()) -> bool:
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras or {""})


def needed() -> Iterator[tuple[str, str | None]]:
    """The name and the installed version of every package that heed, its extras or one of their packages requires."""
    waiting, seen = [(one.name, frozenset(one.extras)) for one in DIRECT if applies(one.marker)], set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            package = distribution(name)
        except PackageNotFoundError:
            yield canonicalize_name(name), None
            continue
        yield canonicalize_name(name), package.version
        required = [Requirement(line) for line in package.requires or []]
        waiting += [(one.name, frozenset(one.extras)) for one in required if applies(one.marker, extras)]


def test_every_needed_package_is_locked_and_installed_in_that_version():
    known = pins()
    if Version(distribution("torch").version).public != str(Version(FIXED[0].partition("==")[2])):
        pytest.skip("this environment has another torch, so it was not installed from constraints.txt")
    for name, version in needed():
        if OF_CUDA.match(name):
            continue
        assert name in known, f"{name} is not in constraints.txt: run make lock"
        if version is None:
            assert name in NOT_INSTALLED, f"{name} is not installed: run make setup-tests"
        else:  # a build for the CPU has a version like 2.13.0+cpu
            public = Version(version).public
            assert known[name].specifier.contains(public), (
                f"{name} is {public}, not {known[name]}: run make setup-tests"
            )


@pytest.mark.parametrize("one", DIRECT, ids=str)
def test_every_requirement_has_a_lower_bound_that_the_lock_is_above(one):
    assert {specifier.operator for specifier in one.specifier} == {">="}, "the lowest version that was tried"
    name = canonicalize_name(one.name)
    assert not applies(one.marker) or one.specifier.contains(next(iter(pins()[name].specifier)).version)


def test_the_lock_has_exact_versions_and_nothing_of_one_registry():
    lines = LOCK.read_text("utf-8").splitlines()[1:]
    for line in lines:
        one = Requirement(line)
        assert one.url is None and [specifier.operator for specifier in one.specifier] == ["=="], line
        assert "--" not in line and "+" not in line
    assert set(FIXED) <= set(lines)
    assert not any(OF_CUDA.match(line) for line in lines), "a machine without a GPU would need them"


def test_what_the_resolver_says_of_a_registry_is_left_out():
    found = "--index-url https://there/simple\nnvidia-nccl-cu13==2 ; sys_platform == 'linux'\ntorch==2.13.0  # via heed\nabc==1\n"
    assert locked(found).splitlines()[1:] == ["abc==1", "torch==2.13.0"]
