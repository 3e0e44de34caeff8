"""What must be set before pages are served to others, and the limits of their queries.

Commands such as ``migrate`` need neither.
"""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.signals import connection_created

from codegen_app.platform.config import sandbox

_MIN_KEY_LENGTH = 32  # characters: at least 128 bits in any encoding
GUNICORN_EXIT_CODE = 4  # its exit status for an application that cannot be loaded


def serving_problems(settings: Any) -> list[str]:
    """Return why pages are not served with these settings; one line each."""
    key, https = settings.SECRET_KEY, settings.HTTPS
    is_weak = len(key) < _MIN_KEY_LENGTH or len(set(key)) < 8
    plain = (url for url in settings.CSRF_TRUSTED_ORIGINS if not url.startswith("https://"))
    plain_origin = next(plain, "")
    any_host = not settings.ALLOWED_HOSTS_GIVEN or "*" in settings.ALLOWED_HOSTS
    problems = (
        (
            not settings.DEBUG and not settings.SECRET_KEY_GIVEN,
            "KILN_SECRET_KEY is not set: every process would sign sessions with another key; set it"
            " to what `python -c 'import secrets; print(secrets.token_urlsafe(50))'` prints",
        ),
        (
            not settings.DEBUG and settings.SECRET_KEY_GIVEN and is_weak,
            f"KILN_SECRET_KEY is weak: use at least {_MIN_KEY_LENGTH} random characters",
        ),
        (
            not settings.PASSWORD_LOGIN and settings.OIDC is None,
            "KILN_PASSWORD_LOGIN=0 without KILN_OIDC_ISSUER disables every login; set one of them",
        ),
        (
            https and settings.DEBUG,
            "KILN_HTTPS and KILN_DEBUG are both set: debug pages show everything; drop one",
        ),
        (
            https and any_host,
            "KILN_HTTPS is set, KILN_ALLOWED_HOSTS is not, or is *: name the site's host there",
        ),
        (
            https and not settings.TRUSTED_PROXIES,
            "KILN_HTTPS is set, KILN_TRUSTED_PROXIES is not: say how many proxies stand before"
            " Kiln (1); what they write into X-Forwarded-For and X-Forwarded-Proto is believed",
        ),
        (
            https and plain_origin,
            f"KILN_HTTPS is set, KILN_TRUSTED_ORIGINS names {plain_origin}: use https://",
        ),
    )
    return [line for is_wrong, line in problems if is_wrong]


def check(settings: Any) -> None:
    """End the process with one line if something is missing, or cannot be read; report what is
    refused because of the sandbox."""
    try:
        problems = serving_problems(settings)
    except ImproperlyConfigured as error:
        problems = [str(error)]
    if problems:
        sys.stderr.write("".join(f"kiln: {line}\n" for line in problems))
        sys.stderr.flush()
        sys.exit(GUNICORN_EXIT_CODE)
    if line := sandbox.uploads_disabled_reason(settings.FENCE):
        sys.stderr.write(f"kiln: {line}\n")
        sys.stderr.flush()


def limit_queries() -> None:
    """Limit the queries of this process's future connections: a page waits for no lock and no query
    for long. Workers have no limits: their transactions take long."""
    connection_created.connect(limit_connection, dispatch_uid="limits of pages")


def limit_connection(connection: Any, **_: Any) -> None:
    """Set the limits of a new connection."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('lock_timeout', %s, false),"
            " set_config('statement_timeout', %s, false)",
            [
                f"{django_settings.WEB_LOCK_TIMEOUT_S}s",
                f"{django_settings.WEB_STATEMENT_TIMEOUT_S}s",
            ],
        )
