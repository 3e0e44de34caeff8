"""Who may change what."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest

# Starting and cancelling runs, asking for builds, putting choices back.
may_retune = permission_required("codegen_app.retune", raise_exception=True)


def actor(request: HttpRequest) -> AbstractBaseUser:
    """Who asks, on a page that needs a login."""
    return cast(AbstractBaseUser, request.user)
