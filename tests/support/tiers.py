"""A pytest plugin for the three tiers of tests (CONTRIBUTING.md).

``--tier quick`` leaves out what is marked ``full`` or ``long``; ``--tier full``, which is what
pytest does by itself, leaves out ``long``; ``--tier long`` runs nothing else. A test that is named
by its own address (``FILE::TEST``) runs whatever its tier.
"""

from __future__ import annotations

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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[LEFT_OUT] = [item.nodeid for item in items if tier_of(item) == "long"]
    if any("::" in argument for argument in config.args):
        return
    asked = config.getoption("tier")
    runs = {"quick": ("quick",), "full": ("quick", "full"), "long": ("long",)}[asked]
    kept = [item for item in items if tier_of(item) in runs]
    config.hook.pytest_deselected(items=[item for item in items if tier_of(item) not in runs])
    items[:] = kept


def tier_of(item: pytest.Item) -> str:
    """The dearest tier that a test, its class or its file is marked with."""
    return next((name for name in ("long", "full") if item.get_closest_marker(name)), "quick")
