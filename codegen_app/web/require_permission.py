"""Permission checks of views."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from codegen_app.web.server.rules import denial

View = Callable[..., HttpResponse]


def require_permission(permission: str) -> Callable[[View], View]:
    """Restrict a view to logged-in users with the permission; others get one line that names it."""

    def decorated(view: View) -> View:
        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not request.user.has_perm(permission):
                raise PermissionDenied(denial(permission))
            return view(request, *args, **kwargs)

        return login_required(checked)

    return decorated


def actor(request: HttpRequest) -> AbstractBaseUser:
    """The requesting user, on a page that needs a login."""
    return cast(AbstractBaseUser, request.user)
