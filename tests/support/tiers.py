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
from collections.abc import Iterable, Sequence

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


@pytest.hookimpl(tryfirst=True)  # before -k takes cases out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers = _tiers(items)
    config.stash[LEFT_OUT] = [
        one.nodeid for one, tier in zip(items, tiers, strict=True) if tier == "long"
    ]
    if any("::" in argument for argument in config.args):
        return
    if unknown := sorted(_unknown_cases(items)):
        raise pytest.UsageError("no such case is left to the tier below: " + ", ".join(unknown))
    asked = config.getoption("tier")
    runs = {"quick": ("quick",), "full": ("quick", "full"), "long": ("long",)}[asked]
    kept = [one for one, tier in zip(items, tiers, strict=True) if tier in runs]
    config.hook.pytest_deselected(
        items=[one for one, tier in zip(items, tiers, strict=True) if tier not in runs]
    )
    items[:] = kept


def _tiers(items: Iterable[pytest.Item]) -> list[str]:
    """Of each test, by the markers of itself, its class or its file."""
    seen: Counter[str] = Counter()
    tiers = []
    for item in items:
        test = item.nodeid.partition("[")[0]
        tiers.append(_tier(item, seen[test]))
        seen[test] += 1
    return tiers


def _tier(item: pytest.Item, number: int) -> str:
    """The tier of a test's case, which is the ``number``-th of that test."""
    full, long = (item.get_closest_marker(name) for name in ("full", "long"))
    if full and _is_left(full, item, number):
        return "quick"
    if long and not _is_left(long, item, number):
        return "long"
    return "full" if full else "quick"


def _is_left(marker: pytest.Mark, item: pytest.Item, number: int) -> bool:
    """Whether the case belongs to the tier below the marker's."""
    but: int | Sequence[str] = marker.kwargs.get("but", ())
    return number % but == 0 if isinstance(but, int) else _case(item) in but


def _case(item: pytest.Item) -> str:
    return getattr(getattr(item, "callspec", None), "id", "")


def _unknown_cases(items: list[pytest.Item]) -> set[str]:
    """What markers leave to the tier below though no test has such a case."""
    named = {
        f"{item.nodeid.partition('[')[0]}[{case}]"
        for item in items
        for name in ("full", "long")
        if (marker := item.get_closest_marker(name))
        and not isinstance(marker.kwargs.get("but", ()), int)
        for case in marker.kwargs.get("but", ())
    }
    return named - {item.nodeid for item in items}
