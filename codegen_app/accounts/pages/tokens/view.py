"""API tokens: list one's own, create one, revoke one."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from codegen_app.accounts import permissions
from codegen_app.accounts import tokens as services
from codegen_app.accounts.models import ApiToken
from codegen_app.accounts.pages.tokens.form import TokenForm
from codegen_app.accounts.pages.tokens.query import token_list
from codegen_app.web.forms.fields import ReasonForm
from codegen_app.web.page import render_page
from codegen_app.web.require_permission import actor, require_permission
from scheduler.errors import UserError


@sensitive_variables("text")
@require_http_methods(["GET", "HEAD", "POST"])
@require_permission(permissions.TOKENS)
def tokens(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The list and the form; a new token's text is shown only in the response to the form."""
    is_post, text, status = request.method == "POST", "", 200
    form = TokenForm(request.POST if is_post else None)
    if is_post and form.is_valid():
        fields = form.cleaned_data
        try:
            _, text = services.create_token(
                *(actor(request), fields["name"], fields["scopes"], form.expires_at()),
                worker_name=fields["worker_name"],
                worker_queue=fields["worker_queue"],
            )
            form, status = TokenForm(), 201
        except UserError as error:
            field, _, line = str(error).partition(": ")
            form.add_error(field if field in form.fields else None, line)
            status = 422
    elif is_post:
        status = 422
    return render_page(
        request,
        "accounts/tokens.html",
        token_list(actor(request)),
        as_json=as_json,
        title="API tokens",
        status=status,
        form=form,
        text=text,
    )


@require_POST
@require_permission(permissions.TOKENS)
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke one of the user's own tokens; administrators revoke others' in the admin."""
    token = ApiToken.objects.filter(pk=pk, owner_id=actor(request).pk).first()
    if token is None:
        raise Http404("there is no such token")
    form = ReasonForm(request.POST)
    why = form.cleaned_data["why"] if form.is_valid() else ""
    if services.revoke(token, actor(request), why):
        messages.success(request, f"{token} is revoked.")
    else:
        messages.warning(request, f"{token} was revoked already.")
    return redirect("tokens")
