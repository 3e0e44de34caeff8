"""``manage.py bundle GRAPH FILE.zip``: a graph's bundle, however large it is."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from codegen_app.graphs.models import Graph
from codegen_app.tuning.services import bundles
from scheduler.errors import UserError


class Command(BaseCommand):
    """Pack what the graph's page hands out, here and now."""

    help = "Write the bundle of a graph (kernels, manifest, wrapper) as a zip file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "graph", type=int, help="number of the graph, as in the URL of its page"
        )
        parser.add_argument("file", type=Path, help="zip file to create")
        parser.add_argument("--times", default="", help="shape bucket, as named on the page")

    def handle(self, **options: Any) -> None:
        graph = Graph.objects.select_related("file").filter(pk=options["graph"]).first()
        if graph is None:
            raise CommandError(f"no graph {options['graph']}")
        file: Path = options["file"]
        try:
            requested = bundles.graph_bundle(graph, options["times"])
            with file.open("xb") as out:
                try:
                    bundles.write(requested, out)
                except BaseException:
                    file.unlink()  # all of it, or no file
                    raise
        except UserError as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror or error}") from None
        self.stdout.write(f"{graph} is packed in {file}")
