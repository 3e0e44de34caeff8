"""Additional checks for Django's deployment check: what prevents serving pages (``serving.py``),
storing artifacts, and signing in."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Error, Tags, register
from django.core.files.storage import default_storage

from codegen_app.platform.config import serving
from scheduler.errors import MachineError, UserError


@register(Tags.security, deploy=True)
def check_serving(**_: Any) -> list[Error]:
    """Return one error for each reason."""
    return [Error(line, id="kiln.E001") for line in serving.serving_problems(settings)]


@register(Tags.files, deploy=True)
def check_storage(**_: Any) -> list[Error]:
    """Test the bucket: put, list, read and delete an object. A failure is one line."""
    attempt = getattr(default_storage, "attempt", None)
    try:
        if attempt:
            attempt()
    except MachineError as error:
        return [Error(str(error), id="kiln.E002")]
    return []


@register(Tags.security, deploy=True)
def check_oidc(**_: Any) -> list[Error]:
    """Fetch the provider's metadata. A mismatch with the settings is one line."""
    if settings.OIDC is None:
        return []
    from codegen_app.accounts import oidc  # noqa: PLC0415 - of the extra

    try:
        oidc.check_provider()
    except UserError as error:
        return [Error(str(error), id="kiln.E003")]
    return []
