"""Request a kernel's builds and modellings from its page; download or cancel a modelling."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from codegen_app.accounts import permissions
from codegen_app.kernels.modelled.rows import load_report
from codegen_app.kernels.modelling import requests
from codegen_app.kernels.models import GeneratedKernel, KernelUse, Modelling
from codegen_app.kernels.pages.kernel.forms import BuildForm, ModelForm
from codegen_app.kernels.pages.kernel.view import kernel as kernel_view
from codegen_app.kernels.services import builds
from codegen_app.web.require_permission import actor, require_permission
from codegen_app.workers import work
from scheduler.cycles import report_json
from scheduler.errors import UserError


@require_permission(permissions.BUILD)
@require_POST
def build_kernel(request: HttpRequest, name: str) -> HttpResponse:
    """Compile a kernel for any targets with the given flags."""
    kernel = get_object_or_404(GeneratedKernel, name=name)
    form = BuildForm(kernel.source_file, request.POST)
    if form.is_valid():
        names, flags = form.cleaned_data["target"], form.cleaned_data["flags"]
        try:
            requested = [
                builds.request_build(kernel, name, flags, actor(request)) for name in names
            ]
            return redirect(f"{kernel.get_absolute_url()}?build={requested[0].pk}&tab=builds")
        except UserError as error:
            form.add_error(None, str(error))
    request.path = kernel.get_absolute_url()  # the page's links use it
    return kernel_view(request, name, builds=form)


@require_permission(permissions.BUILD)
@require_POST
def model_kernel(request: HttpRequest, name: str) -> HttpResponse:
    """Model a kernel on any boards, at the given sizes: the call of ``node``, else the first."""
    kernel = get_object_or_404(GeneratedKernel, name=name)
    uses = KernelUse.objects.filter(kernel=kernel).select_related(
        "kernel", "template_node__graph", "template_node__problem"
    )
    node = request.POST.get("node", "")
    is_key = node.isdecimal() and len(node) < 19
    use = uses.filter(template_node=int(node) if is_key else 0).first() or uses.first()
    if use is None:
        raise Http404(f"no graph uses {kernel}")
    symbols = use.template_node.problem.symbols if use.template_node.problem else {}
    form = ModelForm(kernel.source_file, symbols, request.POST, node=use.template_node_id)
    if form.is_valid():
        try:
            sizes = form.cleaned_data.get("sizes") or {}
            rows = requests.request_modelling(use, form.chosen(), sizes, actor(request))
            return redirect(f"{kernel.get_absolute_url()}?model={rows[0].pk}&tab=modelled#modelled")
        except UserError as error:
            form.add_error(None, str(error))
    request.path = kernel.get_absolute_url()  # the page's links use it
    return kernel_view(request, name, modelling=form)


def modelled_report(_request: HttpRequest, pk: int) -> HttpResponse:
    """The model's full report as a file."""
    report = load_report(pk)
    if report is None:
        raise Http404(f"modelling {pk} has no report: model the kernel again from its page")
    return HttpResponse(report_json.write(report), content_type="application/json")


@require_permission(permissions.BUILD)
@require_POST
def cancel_modelling(request: HttpRequest, pk: int) -> HttpResponse:
    """Cancel a modelling."""
    row = get_object_or_404(Modelling.objects.select_related("build__kernel"), pk=pk)
    if not work.cancel(row, actor(request)):
        messages.info(request, "This modelling was already finished.")
    return redirect(f"{row.build.kernel.get_absolute_url()}?tab=modelled#modelled")
