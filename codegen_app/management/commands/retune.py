"""``manage.py retune GRAPH``: time the candidates of a graph, or of one of its nodes."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q

from codegen_app.models import Graph, TemplateNode
from codegen_app.services.tuning import start_run
from scheduler.outcome import UserError


class Command(BaseCommand):
    """Start a tuning run."""

    help = "Time the candidates of a graph (by name or by the beginning of its digest)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to tune, on what, at which sizes."""
        parser.add_argument("graph")
        parser.add_argument("--node", help="one scheduled node (default: all)")
        parser.add_argument("--device", default="cpu", help="cpu, rocm:0 … (default: cpu)")
        parser.add_argument("--target", default="cpu", help="default: cpu, the emulation")
        parser.add_argument("--bind", action="append", default=[], metavar="SYMBOL=SIZE")
        parser.add_argument("--limit", type=int, help="at most so many candidates a problem")

    def handle(self, **options: Any) -> None:
        """Ask for the run, and say where it is shown."""
        graph = _graph(options["graph"])
        try:
            run = start_run(
                graph,
                options["device"],
                options["target"],
                dict(map(_binding, options["bind"])),
                None,
                template_node=_node(graph, options["node"]) if options["node"] else None,
                candidate_limit=options["limit"],
            )
        except UserError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"run {run.pk} is shown at {run.get_absolute_url()}")


def _graph(wanted: str) -> Graph:
    """The newest graph of that name or digest."""
    graph = Graph.objects.filter(Q(name=wanted) | Q(digest__startswith=wanted)).first()
    if graph is None:
        names = ", ".join(Graph.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f"there is no graph {wanted!r}; imported are: {names}")
    return graph


def _node(graph: Graph, name: str) -> TemplateNode:
    node = graph.template_nodes.filter(name=name).first()
    if node is None:
        raise CommandError(f"{graph} has no scheduled node {name!r}: its page lists them")
    return node


def _binding(text: str) -> tuple[str, int]:
    name, separator, value = text.partition("=")
    if not separator or not value.isdecimal():
        raise CommandError(f"--bind {text}: write SYMBOL=SIZE, for example s0=16")
    return name, int(value)
