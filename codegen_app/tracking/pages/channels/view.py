"""Channels that receive alerts: the list, one channel, and its actions."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST

from codegen_app.accounts import permissions
from codegen_app.tracking.models import Channel, ChannelKind, Delivery
from codegen_app.tracking.notifying import channels as services
from codegen_app.tracking.notifying import signing
from codegen_app.tracking.pages.channels.form import (
    DELIVERY_STATES,
    ChannelForm,
    DeliveriesForm,
    EditChannelForm,
)
from codegen_app.tracking.pages.channels.query import channel_list, channel_page
from codegen_app.web.page import Crumb, get_or_404, render_page
from codegen_app.web.require_permission import actor, require_permission
from scheduler.errors import UserError


@require_permission(permissions.NOTIFY)
def channels(request: HttpRequest, as_json: bool = False) -> HttpResponse:
    """All channels, and a form for a new one."""
    is_post = request.method == "POST"
    form = ChannelForm(request.POST if is_post else None)
    if is_post and form.is_valid():
        try:
            row = services.add_channel(actor(request), form.cleaned_data)
            messages.success(request, f"{row} was added: send a test.")
            return redirect("channel", pk=row.pk)
        except UserError as error:
            form.add_error("name", f"{error}.".capitalize())
    address = DeliveriesForm(request.GET)
    return render_page(
        request,
        "tracking/channels.html",
        channel_list(address.text("state")),
        as_json=as_json,
        title="Channels",
        status=422 if is_post else 200,
        address=address,
        delivery_states=DELIVERY_STATES,
        form=form,
    )


@sensitive_variables("key")
@require_permission(permissions.NOTIFY)
def channel(request: HttpRequest, pk: int, as_json: bool = False) -> HttpResponse:
    """One channel: its settings, its signing key, and its deliveries."""
    row = _row(pk)
    is_post = request.method == "POST"
    form = EditChannelForm(row, request.POST if is_post else None)
    if is_post and form.is_valid():
        try:
            services.change_channel(actor(request), row, form.cleaned_data)
            messages.success(request, f"{row} was saved.")
            return redirect("channel", pk=pk)
        except UserError as error:
            form.add_error("name", f"{error}.".capitalize())
    address = DeliveriesForm(request.GET)
    page = get_or_404(f"channel {pk}", channel_page, pk, address.text("state"))
    key = key_error = ""
    if row.kind == ChannelKind.WEBHOOK:
        try:
            key = signing.key(row.key_salt)
        except signing.OtherSecretError as error:
            key_error = str(error)
    response = render_page(
        request,
        "tracking/channel.html",
        page,
        as_json=as_json,
        title=page.channel.name,
        stages=[Crumb(page.channel.name)],
        status=422 if is_post else 200,
        address=address,
        delivery_states=DELIVERY_STATES,
        form=form,
        key=key,
        key_error=key_error,
    )
    response.headers["Cache-Control"] = "no-store"  # it contains the key
    return response


@require_POST
@require_permission(permissions.NOTIFY)
def switch_channel(request: HttpRequest, pk: int) -> HttpResponse:
    """Switch a channel on or off."""
    row, on = _row(pk), request.POST.get("on") == "1"
    word = "on" if on else "off"
    if services.set_active(actor(request), row, on=on):
        messages.success(request, f"{row} is switched {word}.")
    else:
        messages.warning(request, f"{row} was {word} already.")
    return _back(request, row)


@require_POST
@require_permission(permissions.NOTIFY)
def test_channel(request: HttpRequest, pk: int) -> HttpResponse:
    """Send a message that says it is a test."""
    row = _row(pk)
    try:
        services.send_test(actor(request), row)
    except UserError as error:
        messages.warning(request, f"{error}.")
    else:
        messages.success(request, f"A test to {row} is queued: see the deliveries.")
    return _back(request, row)


@require_POST
@require_permission(permissions.NOTIFY)
def renew_channel_key(request: HttpRequest, pk: int) -> HttpResponse:
    """Create a new signing key."""
    row = _row(pk)
    try:
        services.renew_key(actor(request), row)
    except UserError as error:
        messages.warning(request, f"{error}.")
    else:
        messages.success(request, f"{row} has a new key: new messages are signed with it.")
    return redirect("channel", pk=pk)


@require_POST
@require_permission(permissions.NOTIFY)
def send_again(request: HttpRequest, pk: int) -> HttpResponse:
    """Retry a delivery once."""
    rows = Delivery.objects.select_related(
        "channel", "event__alert__revision", "event__alert__series"
    )
    row = get_or_404(f"delivery {pk}", rows.get, pk=pk)
    if services.retry(actor(request), row):
        messages.success(request, "The delivery is retried now.")
    else:
        messages.warning(request, "It has already been delivered.")
    return _back(request, row.channel)


def _row(pk: int) -> Channel:
    return get_or_404(f"channel {pk}", Channel.objects.get, pk=pk)


def _back(request: HttpRequest, row: Channel) -> HttpResponse:
    """Redirect to the page of the button: the channel's own, or the list."""
    if request.POST.get("page") == "channel":
        return redirect("channel", pk=row.pk)
    return redirect("channels")
