"""``manage.py import_graph MODEL.pt2``: record a model and have its kernels made."""

from __future__ import annotations

import shutil
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from codegen_app.graphs.services.imports import DEFAULT_TARGETS, import_graph
from scheduler.errors import UserError
from scheduler.frontends.archive import default_name
from scheduler.text import one_line


class Command(BaseCommand):
    """Import a torch.export file."""

    help = "Import a torch.export file (.pt2); its kernels are compiled for the given targets."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--name", help="name of the graph (default: the file name)")
        parser.add_argument("--model-name", default="", help="which model, if the file has several")
        parser.add_argument("--target", action="append", help="target to compile for; repeatable")

    def handle(self, **options: Any) -> None:
        file: Path = options["file"]
        if not file.is_file():
            raise CommandError(f"{file} does not exist")
        targets = options["target"] or DEFAULT_TARGETS
        model_name = options["model_name"]
        name = options["name"] or default_name(file.stem, model_name)
        try:
            with _readable(file) as copy:
                graph, new = import_graph(copy, name, targets, None, model_name)
        except UserError as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror or error}") from None
        remark = "" if new else " (already imported)"
        self.stdout.write(f"{one_line(graph.name)} is shown at {graph.get_absolute_url()}{remark}")


@contextmanager
def _readable(file: Path) -> Iterator[Path]:
    """The file, where the process that reads it gets to: given by root, it may lie in a folder
    that is closed to the installation's user. One that is too large is left for the service."""
    if file.stat().st_size > settings.GRAPH_FILE_MAX_BYTES:
        yield file
        return
    folder = settings.VAR_DIR / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        yield Path(shutil.copyfile(file, Path(temporary) / file.name))
