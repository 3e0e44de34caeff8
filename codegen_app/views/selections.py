"""Which kernel serves: the list with its past, putting back, and taking along as JSON."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from codegen_app.models import Selection
from codegen_app.selectors.pages import selections as selectors
from codegen_app.services import exchange
from codegen_app.services import selections as services
from codegen_app.views.page import respond
from codegen_app.views.permissions import may_retune
from scheduler.outcome import UserError


def selections(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """What serves every problem, and what served before."""
    page = selectors.selections()
    return respond(request, "pages/selections.html", page, as_json=as_json, title="Selections")


def export_selections(_: HttpRequest) -> HttpResponse:
    """What serves now, as a file."""
    answer = JsonResponse(exchange.export(), json_dumps_params={"indent": 1})
    answer.headers["Content-Disposition"] = 'attachment; filename="selections.json"'
    return answer


@login_required
@may_retune
@require_POST
def put_back(request: HttpRequest, pk: int) -> HttpResponse:
    """Let an earlier choice serve again."""
    selection = get_object_or_404(Selection.objects.select_related("kernel"), pk=pk)
    try:
        services.put_back(selection, _actor(request), request.POST.get("why", "").strip())
        messages.success(request, f"{selection.kernel.name} serves again.")
    except UserError as error:
        messages.error(request, str(error))
    return redirect("selections")


@login_required
@may_retune
@require_POST
def import_selections(request: HttpRequest) -> HttpResponse:
    """Let the choices of a file serve."""
    file = request.FILES.get("file")
    try:
        if not isinstance(file, UploadedFile):
            raise UserError("choose a file")
        if file.size is None or file.size > exchange.MAX_BYTES:
            raise UserError(f"the file has more than {exchange.MAX_BYTES >> 20} MiB")
        why = request.POST.get("why", "").strip()
        found = exchange.import_text(file.read(), _actor(request), why)
    except UserError as error:
        messages.error(request, str(error))
        return redirect("selections")
    messages.success(request, f"{found.new} choices are new, {found.known} served already.")
    for line in found.left[:10]:
        messages.warning(request, line)
    if len(found.left) > 10:
        messages.warning(request, f"… and {len(found.left) - 10} more were left out")
    return redirect("selections")


def _actor(request: HttpRequest) -> AbstractBaseUser:
    return cast(AbstractBaseUser, request.user)
