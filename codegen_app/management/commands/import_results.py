"""``manage.py import_results FILE…``: what was measured elsewhere, beside our own."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from codegen_app.tracking.services import result_import
from scheduler.errors import UserError


class Command(BaseCommand):
    """Record runs of other installations, or of ``python -m scheduler tune``."""

    help = "Import recorded results (results.json); their models must be imported already."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
        parser.add_argument(
            "--with-sources",
            action="store_true",
            help="import kernels that this version does not generate, with their recorded sources",
        )
        parser.add_argument(
            "--why", default="from the command line", help="reason for the audit log"
        )

    def handle(self, **options: Any) -> None:
        for file in options["files"]:
            try:
                imported = result_import.import_file(
                    file, None, options["why"], with_sources=options["with_sources"]
                )
            except UserError as error:
                raise CommandError(str(error)) from None
            for run in imported.new:
                where = run.get_absolute_url()
                self.stdout.write(f"{file.name}: run {run.pk} is shown at {where}")
            if imported.points:
                self.stdout.write(f"{file.name}: {imported.points} points of histories were added")
            if imported.known:
                self.stdout.write(f"{file.name}: {imported.known} of its runs are here already")
