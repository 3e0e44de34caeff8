"""Import a model's graph."""

from __future__ import annotations

import tempfile
from pathlib import Path

from django import forms
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from codegen_app.accounts import permissions
from codegen_app.accounts.negotiation import wants_json
from codegen_app.graphs.models import Graph
from codegen_app.graphs.pages.imports.query import import_page
from codegen_app.graphs.services import imports as graphs
from codegen_app.platform import sanitize
from codegen_app.web.page import render_page
from codegen_app.web.require_permission import actor, require_permission
from codegen_app.web.server import bodies
from scheduler.errors import UserError
from scheduler.frontends.archive import default_name
from scheduler.text import one_line, to_identifier

_LONGEST_NAME = 120


class ImportGraphForm(forms.Form):
    """A model's file, the model to import if it has several, and a name: by default the file's own
    name, followed by the model's."""

    file = forms.FileField(
        widget=forms.FileInput(attrs={"accept": ".pt2"}),
        error_messages={"required": "Choose a file.", "empty": "The file is empty."},
    )
    name = forms.CharField(
        required=False,
        max_length=200,
        widget=forms.TextInput(
            attrs={"placeholder": "the file\N{RIGHT SINGLE QUOTATION MARK}s name"}
        ),
    )

    model_name = forms.CharField(
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": "only if the file contains several models"}),
    )

    def chosen_name(self) -> str:
        name: str = self.cleaned_data["name"]
        stem = Path(self.cleaned_data["file"].name or "graph").stem
        return name or default_name(stem, self.cleaned_data["model_name"])[:200]


@require_permission(permissions.IMPORT)
@require_http_methods(["GET", "POST"])
def import_graph(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Upload a file; a graph that already exists is opened. A client that asks for JSON (the page's
    own script) gets the graph's address, or what is wrong with the file."""
    is_post = request.method == "POST"
    form = ImportGraphForm(request.POST, request.FILES) if is_post else ImportGraphForm()
    if is_post and form.is_valid():
        try:
            graph, new = _import_file(request, form)
        except UserError as error:
            form.add_error("file", str(error))
        else:
            if not new:
                messages.info(request, "This graph was already imported.")
            if wants_json(request):
                return JsonResponse({"url": graph.get_absolute_url(), "new": new}, status=201)
            return redirect(graph)
    if is_post and wants_json(request):
        errors = [
            {"field": name, "text": str(line)}
            for name, lines in form.errors.items()
            for line in lines
        ]
        return JsonResponse({"errors": errors}, status=422)
    return render_page(
        request,
        "graphs/import.html",
        import_page(),
        as_json=as_json,
        title="Import",
        status=422 if is_post else 200,
        json_url=reverse("import_json"),
        form=form,
        upload_url=bodies.ticket_url(request, "import"),
    )


def _import_file(request: HttpRequest, form: ImportGraphForm) -> tuple[Graph, bool]:
    file: UploadedFile = form.cleaned_data["file"]
    name = sanitize.storable_text(file.name or "model.pt2", _LONGEST_NAME)
    shown_name = one_line(name, _LONGEST_NAME)
    with tempfile.TemporaryDirectory() as folder:
        # The path contains nothing unsafe from the sender: errors name the file as they called it.
        path = Path(folder) / f"{to_identifier(Path(file.name or '').stem)[:80] or 'model'}.pt2"
        with path.open("wb") as out:
            for chunk in file.chunks():
                out.write(chunk)
        try:
            return graphs.import_graph(
                path,
                form.chosen_name(),
                graphs.DEFAULT_TARGETS,
                actor(request),
                form.cleaned_data["model_name"],
            )
        except UserError as error:
            line = str(error).replace(str(path), shown_name)
            line = line.replace(path.name, shown_name)
            raise UserError(line if shown_name in line else f"{shown_name}: {line}") from error
