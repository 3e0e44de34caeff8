"""The page that imports files: recent graphs with their progress."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from codegen_app.graphs.models import Graph
from codegen_app.graphs.pages.graphs.query import TargetBuilds, builds_of_graphs
from codegen_app.tuning.services.packing import may_cancel
from codegen_app.web.row import build_row
from codegen_app.workers.models import OPEN_STATES, State

_LATEST = 5
_COUNTED = 100  # of the queue


@dataclass(frozen=True)
class ImportRow:
    """A graph, its place in the queue (0 unless it waits) and the builds of its kernels.

    ``may_cancel``: its preparation is open, and the reader may cancel it.
    """

    id: int
    url: str
    name: str
    state: str
    reason: str
    place: int
    builds: tuple[TargetBuilds, ...]
    may_cancel: bool
    created_at: datetime

    @property
    def compiled(self) -> int:
        """The number of finished builds."""
        return sum(row.done + row.rejected for row in self.builds)

    @property
    def requested(self) -> int:
        """The number of builds."""
        return sum(row.total for row in self.builds)


@dataclass(frozen=True)
class ImportPage:
    """Files of at most ``limit_bytes``; the newest graphs with their progress."""

    limit_bytes: int
    graphs: tuple[ImportRow, ...]


def import_page(person: AbstractBaseUser | AnonymousUser) -> ImportPage:
    """Return the newest graphs as ``person`` sees them (3 queries)."""
    queue = Graph.objects.filter(state=State.QUEUED).order_by("-priority", "pk")
    places = {
        pk: place for place, pk in enumerate(queue.values_list("pk", flat=True)[:_COUNTED], 1)
    }
    fields = ("name", "state", "reason", "created_at", "imported_by")
    newest = list(Graph.objects.only(*fields)[:_LATEST])
    builds = builds_of_graphs([graph.pk for graph in newest])
    return ImportPage(
        limit_bytes=settings.GRAPH_FILE_MAX_BYTES,
        graphs=tuple(
            build_row(
                ImportRow,
                graph,
                id=graph.pk,
                url=graph.get_absolute_url(),
                place=places.get(graph.pk, 0),
                builds=builds.get(graph.pk, ()),
                may_cancel=graph.state in OPEN_STATES and may_cancel(graph.imported_by_id, person),
            )
            for graph in newest
        ),
    )
