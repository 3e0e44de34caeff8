"""Bundles as zip files: a graph's kernels, or one kernel for one of its nodes.

A small one is packed during the request, a larger one by a worker (``tuning/pages/packing``).
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from urllib.parse import urlencode

from django.contrib import messages
from django.http import FileResponse, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import GeneratedKernel, KernelUse, Packing
from codegen_app.platform import files
from codegen_app.tuning.services import bundles, packing
from codegen_app.tuning.services.bundles import BundleRequest, folder_name
from codegen_app.web import ranges
from codegen_app.web.forms.query import BundleForm
from codegen_app.workers.models import State
from scheduler.errors import UserError

_packing_lock = Lock()


def graph_bundle(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The whole graph, each node with its selected kernel in the bucket ``?times=``."""
    graph = get_object_or_404(Graph.objects.select_related("file"), pk=pk)
    times = BundleForm(request.GET).text("times")
    return _download(request, graph, lambda: bundles.graph_bundle(graph, times))


def kernel_bundle(request: HttpRequest, name: str) -> HttpResponseBase:
    """One kernel, for the node ``?node=`` or the first that it can serve."""
    kernel = get_object_or_404(GeneratedKernel, name=name)
    uses = KernelUse.objects.filter(kernel=kernel).select_related(
        "kernel", "template_node__graph__file"
    )
    requested = uses.filter(template_node=BundleForm(request.GET).number("node") or 0)
    use = requested.first() or uses.first() or get_object_or_404(uses)
    return _download(request, kernel, lambda: bundles.kernel_bundle(use))


def packed_bundle(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The packed bundle, or the page that shows its progress."""
    row = get_object_or_404(Packing.objects.select_related("file", "graph", "use__kernel"), pk=pk)
    if row.state != State.DONE:
        return redirect(row)
    return _stored(request, row)


def _download(
    request: HttpRequest,
    subject: Graph | GeneratedKernel,
    request_bundle: Callable[[], BundleRequest],
) -> HttpResponseBase:
    """Return the zip, or the page that requests it, or redirect to the subject's page with one line
    that says why there is none."""
    try:
        requested = request_bundle()
        if requested.is_quick:
            # A process packs one at a time, so that others get their pages meanwhile.
            if not _packing_lock.acquire(blocking=False):
                raise UserError("another bundle is being packed: try again in a moment")
            try:
                packed = bundles.open_bundle(requested)
            finally:
                _packing_lock.release()
            return FileResponse(packed, as_attachment=True, filename=f"{requested.folder}.zip")
    except UserError as error:
        messages.error(request, str(error))
        return redirect(subject)
    except FileNotFoundError:
        messages.error(request, f"{subject}: file missing from the storage: import the graph again")
        return redirect(subject)
    row = packing.find_packing(requested)
    if row is not None:
        return _stored(request, row) if row.state == State.DONE else redirect(row)
    fields = {"use": requested.use.pk} if requested.use else {"times": requested.times}
    query = urlencode({key: value for key, value in fields.items() if value})
    address = reverse("pack", args=[requested.graph.pk])
    return redirect(f"{address}?{query}" if query else address)


def _stored(request: HttpRequest, row: Packing) -> HttpResponseBase:
    """Return the file from the storage; if it was lost or damaged, the page that says so."""
    assert row.file is not None, "it is done"
    try:
        file = files.open_file(row.file.path, row.file.digest)
    except FileNotFoundError:
        packing.mark_missing(row)
        return redirect(row)
    return ranges.file_response(
        request,
        file,
        row.file.size_bytes,
        row.file.digest,
        f"{folder_name(row.graph, row.use)}.zip",
    )
