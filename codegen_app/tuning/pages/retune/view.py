"""The page that confirms a tuning request: targets, budget and reason."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from codegen_app.accounts import permissions
from codegen_app.tuning.pages.retune.form import RetuneForm, SubjectForm
from codegen_app.tuning.pages.retune.query import retune_page
from codegen_app.tuning.services import retuning
from codegen_app.web.page import render_page
from codegen_app.web.require_permission import actor, require_permission
from scheduler.errors import UserError


@require_permission(permissions.RETUNE)
@require_http_methods(["GET", "HEAD", "POST"])
def retune(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The subjects (``?graph= node= kernel= selection= run=``, each repeatable) to confirm;
    ``target`` are the targets that are chosen at first.

    A POST with ``why`` starts the runs.
    """
    subject_form = SubjectForm(request.POST if request.method == "POST" else request.GET)
    subject_form.full_clean()
    subjects = subject_form.subjects()
    begins = "why" in request.POST
    form = RetuneForm(request.POST if begins else None, subjects, request.GET.getlist("target"))
    if begins and subject_form.is_valid() and form.is_valid():
        try:
            runs = retuning.start(subjects, form.request(), actor(request))
        except UserError as error:
            form.add_error(None, str(error))
        else:
            if len(runs) == 1:
                messages.success(request, "The run was requested.")
                return redirect(runs[0])
            messages.success(request, f"{len(runs)} runs were requested.")
            return redirect("tuning_runs")
    page = retune_page(subjects, form.target_names)
    boxes = form.boxes(page.targets)
    return render_page(
        request,
        "tuning/retune.html",
        page,
        as_json=as_json,
        title="Tune",
        status=422 if begins else 200,
        pointed=subject_form,
        form=form,
        served=[(box, choice) for box, choice in boxes if choice.is_measured],
        unserved=[(box, choice) for box, choice in boxes if not choice.is_measured],
        waits=any(box.data["selected"] for box, choice in boxes if not choice.is_measured),
    )
