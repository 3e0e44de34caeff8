"""Bundles, as zips: a graph's kernels, or one kernel for one of its nodes."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import IO

from django.contrib import messages
from django.http import FileResponse, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect

from codegen_app.forms.address import BundleForm
from codegen_app.models import GeneratedKernel, Graph, TemplateNode
from codegen_app.services import bundles
from scheduler.codegen import layout
from scheduler.outcome import UserError

MOST_NODES = 5_000  # of a graph that is packed while a page waits: some ten seconds
_packing = Lock()


def graph_bundle(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The whole graph, each node with the kernel that serves it in the bucket ``?times=``."""
    graph = get_object_or_404(Graph.objects.select_related("file"), pk=pk)
    times = BundleForm(request.GET).text("times")
    return _download(request, graph, graph, graph.digest, lambda: bundles.of_graph(graph, times))


def kernel_bundle(request: HttpRequest, name: str) -> HttpResponseBase:
    """One kernel, for the node ``?node=`` or the first that it can serve."""
    kernel = get_object_or_404(GeneratedKernel, name=name)
    nodes = TemplateNode.objects.filter(uses__kernel=kernel).select_related("graph__file")
    requested = nodes.filter(pk=BundleForm(request.GET).number("node") or 0)
    node = requested.first() or nodes.first() or get_object_or_404(nodes)
    return _download(
        request,
        node.graph,
        kernel,
        kernel.source_digest,
        lambda: bundles.of_kernel(kernel, node),
    )


def _download(
    request: HttpRequest,
    graph: Graph,
    subject: Graph | GeneratedKernel,
    digest: str,
    make: Callable[[], IO[bytes]],
) -> HttpResponseBase:
    """The zip, or back to the page with one line that says why there is none.

    A process packs one at a time: others have their pages meanwhile.
    """
    try:
        _check_size(graph)
        if not _packing.acquire(blocking=False):
            raise UserError("another bundle is being packed: try again in a moment")
        try:
            packed = make()
        finally:
            _packing.release()
    except UserError as error:
        messages.error(request, str(error))
        return redirect(subject)
    except FileNotFoundError:
        messages.error(request, f"{graph}: its file is missing from the storage: import it again")
        return redirect(subject)
    return FileResponse(
        packed, as_attachment=True, filename=f"{layout.bundle_folder(subject.name, digest)}.zip"
    )


def _check_size(graph: Graph) -> None:
    """Raise ``UserError`` for a graph that takes longer to pack than a page should wait."""
    if graph.node_count > MOST_NODES:
        raise UserError(
            f"{graph.node_count} nodes are too many to be packed while a page waits; on the"
            f" server: python manage.py bundle {graph.pk} FILE.zip"
        )
