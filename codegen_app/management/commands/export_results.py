"""``manage.py export_results FILE``: finished runs with all that was measured, as JSON."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from codegen_app.tracking.services import result_export
from codegen_app.tuning.models import TuningRun
from codegen_app.workers.models import OPEN_STATES
from scheduler.errors import UserError
from scheduler.results import file as results_file
from scheduler.targets.modelled import DEVICE_PREFIX


class Command(BaseCommand):
    """Take what was measured along to another installation."""

    help = "Export finished runs (by default, all that were measured here) for import_results."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="results.json, or compressed as .json.gz")
        parser.add_argument(
            "--run",
            type=int,
            action="append",
            default=[],
            metavar="N",
            help="export this run; repeatable",
        )

    def handle(self, **options: Any) -> None:
        file: Path = options["file"]
        numbers: list[int] = options["run"]
        rows = TuningRun.objects.select_related("graph", "imported").order_by("pk")
        if numbers:
            rows = rows.filter(pk__in=numbers)
        else:
            measured = rows.filter(imported=None).exclude(device__startswith=DEVICE_PREFIX)
            rows = measured.exclude(state__in=OPEN_STATES)
        runs = list(rows)
        present = {run.pk for run in runs}
        if missing := [number for number in numbers if number not in present]:
            raise CommandError(f"no run {missing[0]}")
        try:
            results = result_export.export(runs)
            results_file.write(file, results)
        except UserError as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror or error}") from None
        self.stdout.write(f"{len(results.runs)} runs and {len(results.kernels)} kernels in {file}")
