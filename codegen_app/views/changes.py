"""What people change from the pages: import, build, cancel. By POST, with a login."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from codegen_app.models import GeneratedKernel, Graph, TuningRun
from codegen_app.services import builds, ledger
from codegen_app.services.graphs import import_graph as record_graph
from codegen_app.views.permissions import may_retune
from scheduler.build.flags import parse_flags
from scheduler.outcome import UserError

# What an imported graph's kernels are compiled for unless somebody says otherwise.
_TARGETS = ("gfx942", "gfx1100", "cpu")


@login_required
@require_http_methods(["GET", "POST"])
def import_graph(request: HttpRequest) -> HttpResponse:
    """Drop a file; a mistake is shown beside the form, a graph that is known already is opened."""
    context = {"title": "Import", "limit": settings.GRAPH_FILE_MAX_BYTES}
    file = request.FILES.get("file")
    if request.method != "POST" or not isinstance(file, UploadedFile):
        return render(request, "pages/import.html", context)
    try:
        graph, new = _recorded(request, file)
    except UserError as error:
        return render(request, "pages/import.html", {**context, "error": error}, status=422)
    if not new:
        messages.info(request, "This graph was imported before: here it is.")
    return redirect(graph)


def _recorded(request: HttpRequest, file: UploadedFile) -> tuple[Graph, bool]:
    name = request.POST.get("name", "").strip()[:200] or Path(file.name or "graph").stem[:200]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload.pt2"
        with path.open("wb") as out:
            for chunk in file.chunks():
                out.write(chunk)
        return record_graph(path, name, _TARGETS, _actor(request))


@login_required
@may_retune
@require_POST
def cancel_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Stop a run; what was measured stays."""
    run = get_object_or_404(TuningRun, pk=pk)
    if not ledger.cancel(run, _actor(request), request.POST.get("why", "")):
        messages.info(request, "This run was over already.")
    return redirect(run)


@login_required
@may_retune
@require_POST
def build_kernel(request: HttpRequest, name: str) -> HttpResponse:
    """Compile a kernel for any targets, with the flags that were asked for."""
    kernel = get_object_or_404(GeneratedKernel, name=name)
    wanted = request.POST.getlist("target")
    try:
        if not wanted:
            raise UserError("no target was chosen: tick at least one to build for")
        flags = parse_flags(request.POST.get("flags", ""))
        made = [builds.request_build(kernel, target, flags, _actor(request)) for target in wanted]
    except UserError as error:
        messages.error(request, str(error))
        return redirect(kernel)
    return redirect(f"{kernel.get_absolute_url()}?build={made[0].pk}")


def _actor(request: HttpRequest) -> AbstractBaseUser:
    return cast(AbstractBaseUser, request.user)
