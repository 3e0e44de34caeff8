"""Bundles, as zips: a graph's kernels, or one kernel for one of its nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from django.contrib import messages
from django.http import FileResponse, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect

from codegen_app.forms.address import BundleForm
from codegen_app.models import GeneratedKernel, Graph, TemplateNode
from codegen_app.services import bundles
from scheduler.codegen import layout
from scheduler.outcome import UserError


def graph_bundle(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The whole graph, each node with the kernel that serves it in the bucket ``?times=``."""
    graph = get_object_or_404(Graph.objects.select_related("file"), pk=pk)
    times = BundleForm(request.GET).text("times")
    return _download(request, graph, graph.digest, lambda: bundles.of_graph(graph, times))


def kernel_bundle(request: HttpRequest, name: str) -> HttpResponseBase:
    """One kernel, for the node ``?node=`` or the first that it can serve."""
    kernel = get_object_or_404(GeneratedKernel, name=name)
    nodes = TemplateNode.objects.filter(uses__kernel=kernel).select_related("graph__file")
    requested = nodes.filter(pk=BundleForm(request.GET).number("node") or 0)
    node = requested.first() or nodes.first() or get_object_or_404(nodes)
    return _download(request, kernel, kernel.source_digest, lambda: bundles.of_kernel(kernel, node))


def _download(
    request: HttpRequest,
    subject: Graph | GeneratedKernel,
    digest: str,
    make: Callable[[], IO[bytes]],
) -> HttpResponseBase:
    """The zip, or back to the page with one line that says why there is none."""
    try:
        packed = make()
    except UserError as error:
        messages.error(request, str(error))
        return redirect(subject)
    return FileResponse(
        packed, as_attachment=True, filename=f"{layout.bundle_folder(subject.name, digest)}.zip"
    )
