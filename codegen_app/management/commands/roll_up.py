"""``manage.py roll_up``: carry out policies of retention at once; workers do it by themselves."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from codegen_app.tracking.models import RetentionPolicy
from codegen_app.tracking.services import rollup


class Command(BaseCommand):
    """Carries out the active policies, or counts what any would be of."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--policy", metavar="NAME", help="apply this policy only")
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *_: Any, policy: str | None, dry_run: bool, **__: Any) -> None:
        rows = RetentionPolicy.objects.order_by("name")
        if policy is not None:
            rows = rows.filter(name=policy)
            if not rows:
                raise CommandError(f"--policy {policy}: no such policy; see the admin")
        if not rows:
            self.stdout.write("there is no policy: all points, samples and deliveries are kept")
        for row in rows:
            if dry_run:
                active = "" if row.active else " (it is not active)"
                self.stdout.write(
                    f"{row}: {rollup.format_due(row, rollup.count_due(row))}"
                    f" would be deleted{active}"
                )
            elif row.active:
                count = rollup.roll_up(row)
                self.stdout.write(f"{row}: {rollup.format_count(row, count)} deleted")
            else:
                self.stdout.write(f"{row}: not active, nothing is done")
