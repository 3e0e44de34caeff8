"""What Django's checks of a deployment say beside its own: what keeps pages from being
served (``serving.py``), and what keeps artifacts from being stored
and people from signing in."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Error, Tags, register
from django.core.files.storage import default_storage

from codegen_app.config import serving
from scheduler.errors import MachineError, UserError


@register(Tags.security, deploy=True)
def check_serving(**_: Any) -> list[Error]:
    """One error for each reason."""
    return [Error(line, id="kiln.E001") for line in serving.serving_problems(settings)]


@register(Tags.files, deploy=True)
def check_storage(**_: Any) -> list[Error]:
    """A bucket is tried: an object is put, listed, read and deleted. One line where it fails."""
    attempt = getattr(default_storage, "attempt", None)
    try:
        if attempt:
            attempt()
    except MachineError as error:
        return [Error(str(error), id="kiln.E002")]
    return []


@register(Tags.security, deploy=True)
def check_oidc(**_: Any) -> list[Error]:
    """The provider is asked what it is. One line where that does not fit the settings."""
    if settings.OIDC is None:
        return []
    from codegen_app.access import oidc  # noqa: PLC0415 - of the extra

    try:
        oidc.check_provider()
    except UserError as error:
        return [Error(str(error), id="kiln.E003")]
    return []
