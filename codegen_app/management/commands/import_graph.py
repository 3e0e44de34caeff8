"""``manage.py import_graph MODEL.pt2``: record a model and have its kernels made."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from codegen_app.services.graphs import DEFAULT_TARGETS, import_graph
from scheduler.outcome import UserError
from scheduler.text import one_line


class Command(BaseCommand):
    """Import a torch.export file."""

    help = "Import a torch.export file (.pt2); its kernels are compiled for the given targets."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The file, its name, and the targets."""
        parser.add_argument("file", type=Path)
        parser.add_argument("--name", help="what to call it (default: the file's name)")
        parser.add_argument("--target", action="append", help="may be given several times")

    def handle(self, **options: Any) -> None:
        """Import, and say where it is shown."""
        file: Path = options["file"]
        if not file.is_file():
            raise CommandError(f"{file} is not there")
        targets = options["target"] or DEFAULT_TARGETS
        try:
            graph, new = import_graph(file, options["name"] or file.stem, targets, None)
        except UserError as error:
            raise CommandError(str(error)) from None
        known = "" if new else " (imported before)"
        self.stdout.write(f"{one_line(graph.name)} is shown at {graph.get_absolute_url()}{known}")
