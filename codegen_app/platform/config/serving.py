"""What must be set before pages are served to others; commands such as ``migrate`` need none."""

from __future__ import annotations

import sys
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from codegen_app.platform.config import sandbox

_MIN_KEY_LENGTH = 32  # characters: at least 128 bits in any encoding
GUNICORN_EXIT_CODE = 4  # its exit status for an application that cannot be loaded


def serving_problems(settings: Any) -> list[str]:
    """Return why pages are not served with these settings; one line each."""
    found = []
    if not settings.DEBUG:
        if not settings.SECRET_KEY_GIVEN:
            found.append(
                "KILN_SECRET_KEY is not set: every process would sign sessions with another key;"
                " set it to what `python -c 'import secrets; print(secrets.token_urlsafe(50))'`"
                " prints"
            )
        elif len(settings.SECRET_KEY) < _MIN_KEY_LENGTH or len(set(settings.SECRET_KEY)) < 8:
            found.append(
                f"KILN_SECRET_KEY is weak: use at least {_MIN_KEY_LENGTH} random characters"
            )
    if not settings.PASSWORD_LOGIN and settings.OIDC is None:
        found.append(
            "KILN_PASSWORD_LOGIN=0 without KILN_OIDC_ISSUER disables every login; set one of them"
        )
    if settings.HTTPS:
        found += _https(settings)
    return found


def _https(settings: Any) -> list[str]:
    found = []
    if settings.DEBUG:
        found.append(
            "KILN_HTTPS and KILN_DEBUG are both set: debug pages show everything; drop one"
        )
    if not settings.ALLOWED_HOSTS_GIVEN or "*" in settings.ALLOWED_HOSTS:
        found.append(
            "KILN_HTTPS is set, KILN_ALLOWED_HOSTS is not, or is *: name the site's host there"
        )
    if not settings.TRUSTED_PROXIES:
        found.append(
            "KILN_HTTPS is set, KILN_TRUSTED_PROXIES is not: say how many proxies stand before"
            " Kiln (1); what they write into X-Forwarded-For and X-Forwarded-Proto is believed"
        )
    if plain := [one for one in settings.CSRF_TRUSTED_ORIGINS if not one.startswith("https://")]:
        found.append(f"KILN_HTTPS is set, KILN_TRUSTED_ORIGINS names {plain[0]}: use https://")
    return found


def check(settings: Any) -> None:
    """End the process with one line if something is missing, or cannot be read; report what is
    refused because of the sandbox."""
    try:
        found = serving_problems(settings)
    except ImproperlyConfigured as error:
        found = [str(error)]
    if found:
        sys.stderr.write("".join(f"kiln: {line}\n" for line in found))
        sys.stderr.flush()
        sys.exit(GUNICORN_EXIT_CODE)
    if line := sandbox.uploads_disabled_reason(settings.FENCE):
        sys.stderr.write(f"kiln: {line}\n")
        sys.stderr.flush()
