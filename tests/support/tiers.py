"""A pytest plugin for the three tiers of tests (CONTRIBUTING.md).

``--tier quick`` leaves out what is marked ``full`` or ``long``; ``--tier full``, which is what
pytest does by itself, leaves out ``long``; ``--tier long`` runs nothing else. A test that is named
by its own address (``FILE::TEST``) runs whatever its tier.

Of a parametrised test some cases can be left to the tier below: ``@pytest.mark.full(but=["f16"])``
has ``[f16]`` run with the quick tests, ``@pytest.mark.long(but=3)`` the first case and every third
after it with the full ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

LEFT_OUT = pytest.StashKey[list[str]]()
"""The addresses of collected tests of the long tier."""

TIERS = ("quick", "full", "long")

# How long an example takes to draw says something of the machine and what else it does. The same
# examples each time, but where finding new ones is what is asked for.
hypothesis_settings.register_profile(
    "fixed", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
hypothesis_settings.register_profile(
    "random", hypothesis_settings.get_profile("fixed"), derandomize=False, print_blob=True
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=TIERS, default="full", help="which tests run")


def pytest_configure(config: pytest.Config) -> None:
    is_long = config.getoption("tier") == "long"
    hypothesis_settings.load_profile("random" if is_long else "fixed")


@pytest.hookimpl(tryfirst=True)  # before -k deselects cases, which are counted
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers = dict(_tiers(items))
    config.stash[LEFT_OUT] = [item.nodeid for item in items if tiers[item] == "long"]
    if any("::" in argument for argument in config.args):
        return
    if unknown := sorted(_unknown_cases(items)):
        raise pytest.UsageError("no such case is left to the tier below: " + ", ".join(unknown))
    asked = config.getoption("tier")
    runs = {"quick": ("quick",), "full": ("quick", "full"), "long": ("long",)}[asked]
    config.hook.pytest_deselected(items=[item for item in items if tiers[item] not in runs])
    items[:] = [item for item in items if tiers[item] in runs]


def _tiers(items: Iterable[pytest.Item]) -> Iterator[tuple[pytest.Item, str]]:
    """Each item with its tier, by the markers of the test, its class or its file."""
    seen: Counter[str] = Counter()
    for item in items:
        test, case = _parts(item)
        full, long = (item.get_closest_marker(name) for name in ("full", "long"))
        if full and _is_left(full, case, seen[test]):
            yield item, "quick"
        elif long and not _is_left(long, case, seen[test]):
            yield item, "long"
        else:
            yield item, "full" if full else "quick"
        seen[test] += 1


def _parts(item: pytest.Item) -> tuple[str, str]:
    """The address of a test, and the name of its case; "" where it has none."""
    test, _, case = item.nodeid.partition("[")
    return test, case.removesuffix("]")


def _left(marker: pytest.Mark) -> int | Sequence[str]:
    """Which cases belong to the tier below the marker's: every so many, or these."""
    cases: int | Sequence[str] = marker.kwargs.get("but", ())
    return cases


def _is_left(marker: pytest.Mark, case: str, number: int) -> bool:
    """Whether a case, the ``number``-th of its test, belongs to the tier below the marker's."""
    left = _left(marker)
    return number % left == 0 if isinstance(left, int) else case in left


def _unknown_cases(items: Iterable[pytest.Item]) -> set[str]:
    """Cases that markers leave to the tier below and that no test has."""
    named, known = set(), set()
    for item in items:
        test, case = _parts(item)
        known.add((test, case))
        for marker in item.iter_markers():
            left = _left(marker) if marker.name in TIERS else 0
            if not isinstance(left, int):
                named.update((test, each) for each in left)
    return {f"{test}[{case}]" for test, case in named - known}
