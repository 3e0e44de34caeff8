"""What Django's checks of a deployment say beside its own: what keeps pages from being
served (``serving.py``)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Error, Tags, register

from codegen_app.config import serving


@register(Tags.security, deploy=True)
def served(**_: Any) -> list[Error]:
    """One error for each reason."""
    return [Error(line, id="kiln.E001") for line in serving.problems(settings)]
