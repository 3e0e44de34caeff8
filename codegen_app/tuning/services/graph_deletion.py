"""Deleting a graph, with its runs and builds."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, OuterRef

from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import Build, KernelUse
from codegen_app.tuning.models import Candidate
from codegen_app.tuning.services import ledger
from codegen_app.workers import work
from codegen_app.workers.models import OPEN_STATES, State


@transaction.atomic
def delete(graph: Graph) -> None:
    """Delete a graph and stop its work: its preparation, its runs, and builds that nothing else
    waits for. Measurements of its kernels stay."""
    ledger.drop_runs(graph, "its graph was deleted")
    drop_builds(graph)
    graph.delete()


def drop_builds(graph: Graph) -> None:
    """Drop the open builds of a graph's kernels that no other graph shows and no run waits for.
    Workers stop the builds that they are running."""
    uses = KernelUse.objects.filter(kernel=OuterRef("kernel"))
    waits = Candidate.objects.filter(build=OuterRef("pk"), state__in=OPEN_STATES)
    unneeded = Build.objects.filter(
        Exists(uses.filter(template_node__graph=graph)),
        ~Exists(uses.exclude(template_node__graph=graph).filter(is_default=True)),
        ~Exists(waits),
        requested=False,
        state__in=OPEN_STATES,
    )
    work.close(unneeded, State.CANCELLED, "its graph was deleted")
