"""``manage.py history_findings FILE…``: what the detector found in imported histories of kernels of
other commits, held against what those commits changed."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from codegen_app.tracking.queries.history_findings import findings
from codegen_app.tracking.services.history import REPOSITORY
from scheduler.errors import UserError
from scheduler.results import file as results_file


class Command(BaseCommand):
    """Say of each change whether its commit changed the code of that kernel."""

    help = "List the changes found in imported histories, and whether the commit changed the code."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", type=Path, nargs="+", metavar="FILE")

    def handle(self, **options: Any) -> None:
        try:
            runs = [run for file in options["files"] for run in results_file.read(file).runs]
        except UserError as error:
            raise CommandError(str(error)) from None
        report = findings([run.revision for run in runs if run.revision], REPOSITORY)
        for row in report.found:
            verification = "code changed" if row.code_changed else "FALSE ALARM: code unchanged"
            interval = f"{row.low:.3f}, {row.high:.3f}" if row.low and row.high else "not known"
            self.stdout.write(
                f"{row.commit[:9]} {row.ratio:.3f} [{interval}] n={row.n_before}/{row.n_after}"
                f" {row.cause or 'not explained yet'} | {verification} | {row.series}"
                f" | {row.subject}"
            )
        false = sum(not row.code_changed for row in report.found)
        self.stdout.write(
            f"{report.points} points of {report.series} series at {report.revisions} commits:"
            f" {len(report.found)} changes found, {false} where the commit left the code as"
            f" it was (false alarms); {report.code_changes} times a commit changed a kernel's code,"
            f" {report.code_changes_found} found as a change of time"
        )
        if report.waiting:
            self.stdout.write(f"{report.waiting} series are not processed yet: run this again")
