"""Nothing that one reads already moves: scripts that come late find their places kept free."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from django.apps import apps
from django.db.models import DateTimeField, F
from playwright.sync_api import Page, Route

from codegen_app.accounts.models import AuditEntry
from codegen_app.workers.models import Worker
from tests.support import every_page
from tests.support.pages_world import World

pytestmark = pytest.mark.full

SHIFTS = Path(__file__).with_name("shifts.js")


@dataclass
class Late:
    """Scripts of a page, held back until it is painted: a slow line, the same each time."""

    page: Page
    held: list[Route] = field(default_factory=list)
    is_painted: bool = False

    def ask(self, route: Route) -> None:
        """What the browser calls for a script."""
        if self.is_painted:
            route.continue_()
        else:
            self.held.append(route)

    def open(self, address: str) -> list[str]:
        """What moved of a page after it was painted, its scripts having come last."""
        self.is_painted = False
        self.page.goto(address, wait_until="commit")
        self.page.evaluate("painted()")
        self.is_painted = True
        for route in self.held:
            route.continue_()
        self.held.clear()
        self.page.wait_for_selector("html[data-ready]")
        moved: list[str] = self.page.evaluate("shifts()")
        return moved


def make_old() -> None:
    """Everything is of three days ago: what says "9 s ago" says "10 s ago" soon, and is longer."""
    for model in apps.get_app_config("codegen_app").get_models():
        if model in {AuditEntry, Worker}:  # is never changed; lives
            continue
        times = [f.name for f in model._meta.fields if isinstance(f, DateTimeField)]
        model._default_manager.update(**{name: F(name) - timedelta(days=3) for name in times})


@pytest.mark.long
@pytest.mark.parametrize("width", [1400, 360])
def test_nothing_moves_when_scripts_come_late(page: Page, world: World, width: int) -> None:
    every_page.furnish(world.graph)
    make_old()
    page.set_viewport_size({"width": width, "height": 900})
    page.add_init_script(path=SHIFTS)
    late = Late(page)
    page.route("**/*.js", late.ask)
    moved = []
    for name, address in every_page.addresses().items():
        moved += [f"{name}: {line}" for line in late.open(address)]
    assert not moved, "\n".join(moved)
