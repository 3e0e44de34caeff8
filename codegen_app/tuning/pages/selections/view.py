"""Selections: the list with its history, restoring one, export and import as JSON."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from codegen_app.accounts import permissions
from codegen_app.tuning.models import Selection
from codegen_app.tuning.pages.selections import query as selectors
from codegen_app.tuning.pages.selections.columns import COLUMNS
from codegen_app.tuning.pages.selections.form import ImportSelectionsForm
from codegen_app.tuning.services import selection_io
from codegen_app.tuning.services import selections as services
from codegen_app.web.forms.fields import ReasonForm
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.pagecache.reader import TICKETED, is_cached_request
from codegen_app.web.require_permission import actor, require_permission
from codegen_app.web.server import bodies
from codegen_app.web.table_view import render_table_page
from codegen_app.web.tables import build_table
from scheduler.errors import UserError

_MAX_REPORTED = 10  # lines of a file that are reported one by one


def selections(
    request: HttpRequest,
    *,
    as_json: bool = False,
    importing: ImportSelectionsForm | None = None,
    errors: ReasonForm | None = None,
) -> HttpResponse:
    """The current and earlier selections of every problem. The forms are invalid submissions."""
    request.path = reverse("selections")  # the page's links use it, also after an error
    page, form = selectors.selections(), TableForm(request.GET, COLUMNS)
    table = build_table("selections", COLUMNS, page.buckets, form.asked)
    return render_table_page(
        request,
        "tuning/selections.html",
        page,
        table,
        form,
        as_json=as_json,
        title="Selections",
        status=422 if importing or errors else 200,
        importing=importing or ImportSelectionsForm(),
        import_address=TICKETED
        if is_cached_request(request)
        else bodies.ticket_url(request, "import_selections"),
        errors=errors,
    )


def export_selections(_: HttpRequest) -> HttpResponse:
    """The current selections as a file."""
    answer = JsonResponse(selection_io.export(), json_dumps_params={"indent": 1})
    answer.headers["Content-Disposition"] = 'attachment; filename="selections.json"'
    return answer


@require_permission(permissions.SELECT)
@require_POST
def restore_selection(request: HttpRequest, pk: int) -> HttpResponse:
    """Restore an earlier selection."""
    selection = get_object_or_404(Selection.objects.select_related("kernel"), pk=pk)
    form = ReasonForm(request.POST)
    if form.is_valid():
        try:
            services.restore(selection, actor(request), form.cleaned_data["why"])
            messages.success(request, f"{selection.kernel.name} is selected again.")
            return redirect("selections")
        except UserError as error:
            form.add_error(None, str(error))
    return selections(request, errors=form)


@require_permission(permissions.SELECT)
@require_POST
def import_selections(request: HttpRequest) -> HttpResponse:
    """Import selections from a file."""
    form = ImportSelectionsForm(request.POST, request.FILES)
    if form.is_valid():
        file, why = form.cleaned_data["file"], form.cleaned_data["why"]
        try:
            summary = selection_io.import_text(file.read(), actor(request), why, make=False)
        except UserError as error:
            form.add_error("file", str(error))
        else:
            messages.success(
                request, f"{summary.new} new selections; {summary.known} were selected already."
            )
            for line in summary.skipped[:_MAX_REPORTED]:
                messages.warning(request, line)
            if (unreported := len(summary.skipped) - _MAX_REPORTED) > 0:
                messages.warning(request, f"… and {unreported} more were skipped")
            return redirect("selections")
    return selections(request, importing=form)
