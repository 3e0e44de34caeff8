"""Import a file: a model's graph, results, points, or an external kernel."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from codegen_app.accounts import permissions
from codegen_app.accounts.negotiation import wants_json
from codegen_app.graphs.models import Graph
from codegen_app.kernels.pages.external_kernel.form import UploadKernelForm
from codegen_app.site.pages.imports.forms import ImportForm, SampleForm
from codegen_app.site.pages.imports.importers import check_permission, import_upload
from codegen_app.site.pages.imports.query import import_page
from codegen_app.tuning.services.packing import may_cancel
from codegen_app.web.page import render_page
from codegen_app.web.require_permission import actor, require_permission
from codegen_app.web.server import bodies
from codegen_app.workers import work
from scheduler.errors import UserError
from scheduler.frontends.file_kinds import Use
from scheduler.frontends.recognition import recognize


@require_permission(permissions.IMPORT)
@require_http_methods(["GET", "POST"])
def import_file(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Upload a file. A client that asks for JSON (the page's own script) gets the address of what
    was imported, or what is wrong with the file."""
    is_post = request.method == "POST"
    sent = (request.POST, request.FILES) if is_post else ()
    form, kernel_form = ImportForm(*sent), UploadKernelForm(*sent)
    if is_post and form.is_valid():
        try:
            imported = import_upload(form, kernel_form, actor(request))
        except UserError as error:
            form.add_error("file", str(error))
        else:
            if imported.text:
                messages.info(request, imported.text)
            if wants_json(request):
                return JsonResponse({"url": imported.url, "new": imported.new}, status=201)
            return redirect(imported.url)
    if is_post and wants_json(request):
        return _errors_as_json(form)
    return render_page(
        request,
        "site/import.html",
        import_page(request.user),
        as_json=as_json,
        title="Import",
        status=422 if is_post else 200,
        json_url=reverse("import_json"),
        form=form,
        kernel_form=kernel_form if is_post else UploadKernelForm(),
        upload_url=bodies.ticket_url(request, "import"),
    )


@require_permission(permissions.IMPORT)
@require_POST
def recognize_file(request: HttpRequest) -> HttpResponse:
    """Say what a file is from its first and last bytes, before all of it is sent."""
    form = SampleForm(request.POST, request.FILES)
    if not form.is_valid():
        return _errors_as_json(form)
    recognition = recognize(form.sample())
    advice, use = recognition.advice, recognition.use
    try:
        check_permission(use, actor(request))
    except UserError as error:
        advice, use = str(error), Use.NONE
    return JsonResponse(
        {
            "kind": recognition.kind.name,
            "title": f"This is {recognition.title}.",
            "advice": advice,
            "code": recognition.code,
            "use": use,
        }
    )


def _errors_as_json(form: ImportForm | SampleForm) -> JsonResponse:
    errors = [
        {"field": name, "text": str(line)} for name, lines in form.errors.items() for line in lines
    ]
    return JsonResponse({"errors": errors}, status=422)


@require_permission(permissions.IMPORT)
@require_POST
def cancel_preparation(request: HttpRequest, pk: int) -> HttpResponse:
    """Cancel a graph's preparation: allowed for who imported it and the site's staff."""
    graph = get_object_or_404(Graph, pk=pk)
    if not may_cancel(graph.imported_by_id, request.user):
        raise PermissionDenied("Only the importer and staff can cancel the preparation.")
    if not work.cancel(graph, actor(request)):
        messages.info(request, "This graph was already prepared.")
    return redirect("import")
