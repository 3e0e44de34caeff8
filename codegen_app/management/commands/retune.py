"""``manage.py retune GRAPH``: time the candidates of a graph, or of one of its nodes."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q

from codegen_app.graphs.models import Graph
from codegen_app.tuning.models import TuningRun
from codegen_app.tuning.services import ledger
from codegen_app.tuning.services.retuning import device_for
from codegen_app.tuning.services.run_requests import start_run
from scheduler.errors import UserError
from scheduler.runtime.devices import modelled_device
from scheduler.targets.modelled import is_modelled
from scheduler.tuning.budget import Budget, parse_seconds
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY, STRATEGIES


class Command(BaseCommand):
    """Start a tuning run, or cancel one."""

    help = "Tune a graph, given by name or by a prefix of its hash, or cancel a run."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("graph", nargs="?")
        parser.add_argument("--cancel", type=int, metavar="RUN", help="cancel this run")
        parser.add_argument("--node", help="tune this scheduled node (default: all)")
        parser.add_argument(
            "--target", help="default: cpu (emulation), or the target of a modelled device"
        )
        parser.add_argument("--device", help="cpu, rocm:0, model:MI300X … (default: the target's)")
        parser.add_argument("--bind", action="append", default=[], metavar="SYMBOL=SIZE")
        parser.add_argument("--limit", type=int, help="maximum number of candidates per problem")
        parser.add_argument(
            "--budget", metavar="TIME", help="search with this time limit: 60s, 5m, 1h"
        )
        parser.add_argument("--compiles", type=int, metavar="N", help="maximum number of compiles")
        parser.add_argument(
            "--measurements", type=int, metavar="N", help="maximum number of measurements"
        )
        parser.add_argument(
            "--strategy",
            default=DEFAULT_STRATEGY,
            choices=tuple(STRATEGIES),
            help="search strategy (default: %(default)s)",
        )
        parser.add_argument(
            "--priority", type=int, default=0, help="higher runs first (default: %(default)s)"
        )
        parser.add_argument(
            "--why", default="from the command line", help="reason for the audit log"
        )

    def handle(self, **options: Any) -> None:
        try:
            if options["cancel"] is None:
                self._start(options)
                return
            run = TuningRun.objects.filter(pk=options["cancel"]).first()
            if run is None:
                raise CommandError(f"no run {options['cancel']}")
            if not ledger.cancel(run, None, options["why"]):
                raise CommandError(f"run {run.pk} is over: {run.state}")
            self.stdout.write(f"run {run.pk} is cancelled")
        except UserError as error:
            raise CommandError(str(error)) from None

    def _start(self, options: dict[str, Any]) -> None:
        if options["graph"] is None:
            raise CommandError("name a graph, or give a run with --cancel")
        name = options["graph"]
        graphs = Graph.objects.filter(Q(name=name) | Q(digest__startswith=name))
        graph = graphs.first()  # the newest
        if graph is None:
            names = ", ".join(Graph.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"no graph {name!r}; imported: {names}")
        node = None
        if options["node"]:
            node = graph.template_nodes.filter(name=options["node"]).first()
            if node is None:
                raise CommandError(
                    f"{graph} has no scheduled node {options['node']!r}: its page lists them"
                )
        seconds, target, device = options["budget"], options["target"], options["device"]
        if device and is_modelled(device):
            target = modelled_device(device).target
        target = target or "cpu"
        run = start_run(
            graph,
            device or device_for(target),
            target,
            dict(map(_binding, options["bind"])),
            None,
            template_node=node,
            candidate_limit=options["limit"],
            budget=Budget(
                seconds=None if seconds is None else parse_seconds(seconds),
                compiles=options["compiles"],
                measurements=options["measurements"],
            ),
            strategy=options["strategy"],
            priority=options["priority"],
            why=options["why"],
        )
        self.stdout.write(f"run {run.pk} is shown at {run.get_absolute_url()}")


def _binding(text: str) -> tuple[str, int]:
    name, separator, value = text.partition("=")
    if not separator or not value.isdecimal():
        raise CommandError(f"--bind {text}: write SYMBOL=SIZE, for example s0=16")
    return name, int(value)
