"""The page of a bundle that a worker packs: its progress and its download."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse

from codegen_app.kernels.models import Packing
from codegen_app.web.row import build_row
from codegen_app.workers.models import State


@dataclass(frozen=True)
class PackingPage:
    """``packed`` of ``kernels`` are in the bundle. ``download`` is its address once it is done,
    until ``kept_until`` at least."""

    id: int
    name: str
    graph: str
    graph_url: str
    kernel: str
    times: str
    ask_again: str
    state: str
    reason: str
    is_open: bool
    packed: int
    kernels: int
    targets: tuple[str, ...]
    size_bytes: int | None
    download: str
    created_at: datetime
    finished_at: datetime | None
    kept_until: datetime | None
    requested_by_id: int | None


def packing_page(pk: int) -> PackingPage:
    """Return one packing (1 query). Raises ``Packing.DoesNotExist``."""
    related = ("graph", "use__kernel", "use__template_node", "file")
    row = Packing.objects.select_related(*related).get(pk=pk)
    kept = timedelta(days=settings.KEEP_BUNDLES_DAYS)
    is_done = row.state == State.DONE
    parameters = {"use": row.use_id} if row.use_id else {"times": row.times}
    return build_row(
        PackingPage,
        row,
        name=str(row.use.kernel if row.use else row.graph),
        graph=row.graph.name,
        graph_url=row.graph.get_absolute_url(),
        kernel=row.use.kernel.name if row.use else "",
        ask_again=f"{reverse('pack', args=[row.graph_id])}?{urlencode(parameters)}",
        targets=tuple(row.targets),
        size_bytes=row.file.size_bytes if row.file else None,
        download=reverse("packed_bundle", args=[row.pk]) if is_done else "",
        kept_until=row.finished_at + kept if row.finished_at and is_done else None,
    )
