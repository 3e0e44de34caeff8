"""Request builds of a kernel from its page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from codegen_app.accounts import permissions
from codegen_app.kernels.models import GeneratedKernel
from codegen_app.kernels.pages.kernel.build_form import BuildForm
from codegen_app.kernels.pages.kernel.view import kernel as kernel_view
from codegen_app.kernels.services import builds
from codegen_app.web.require_permission import actor, require_permission
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
            made = [builds.request_build(kernel, name, flags, actor(request)) for name in names]
            return redirect(f"{kernel.get_absolute_url()}?build={made[0].pk}")
        except UserError as error:
            form.add_error(None, str(error))
    request.path = kernel.get_absolute_url()  # the page's links use it
    return kernel_view(request, name, builds=form)
