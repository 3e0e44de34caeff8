"""``manage.py sweep``: remove what nothing needs, at once; workers do it every hour."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from codegen_app.site import retention
from scheduler.errors import MachineError

_ALL = 10**9


class Command(BaseCommand):
    """Removes, or counts, what the settings do not keep."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *_: Any, dry_run: bool, **__: Any) -> None:
        counts = retention.sweep_host(dry_run=dry_run)
        try:
            counts |= retention.sweep(dry_run=dry_run, at_most=_ALL)
        except MachineError as error:
            raise CommandError(str(error)) from None
        for what, count in counts.items():
            self.stdout.write(f"{count} {what} {'would be removed' if dry_run else 'removed'}")
