"""Importing a model's graph."""

from __future__ import annotations

import tempfile
from pathlib import Path

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from codegen_app.access import permissions
from codegen_app.forms.graphs import ImportGraphForm
from codegen_app.models import Graph
from codegen_app.server import bodies
from codegen_app.services import graphs
from codegen_app.views.permissions import actor, needs
from scheduler.outcome import UserError
from scheduler.text import identifier


@needs(permissions.IMPORT)
@require_http_methods(["GET", "POST"])
def import_graph(request: HttpRequest) -> HttpResponse:
    """Drop a file; a graph that is known already is opened."""
    is_post = request.method == "POST"
    form = ImportGraphForm(request.POST, request.FILES) if is_post else ImportGraphForm()
    if is_post and form.is_valid():
        try:
            graph, new = _recorded(request, form)
        except UserError as error:
            form.add_error("file", str(error))
        else:
            if not new:
                messages.info(request, "This graph was imported before: here it is.")
            return redirect(graph)
    context = {
        "title": "Import",
        "form": form,
        "limit": settings.GRAPH_FILE_MAX_BYTES,
        "address": bodies.with_ticket(request, "import"),
    }
    return render(request, "pages/import.html", context, status=422 if is_post else 200)


def _recorded(request: HttpRequest, form: ImportGraphForm) -> tuple[Graph, bool]:
    file: UploadedFile = form.cleaned_data["file"]
    with tempfile.TemporaryDirectory() as folder:
        # Errors name the file; nothing of the sender's leads anywhere.
        path = Path(folder) / f"{identifier(Path(file.name or '').stem)[:80] or 'model'}.pt2"
        with path.open("wb") as out:
            for chunk in file.chunks():
                out.write(chunk)
        return graphs.import_graph(path, form.chosen_name(), graphs.DEFAULT_TARGETS, actor(request))
