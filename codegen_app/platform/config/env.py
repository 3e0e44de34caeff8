"""Typed reading of environment variables; an invalid value stops the start.

Only this module and ``settings.py`` read the environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
LOG_FORMATS = ("text", "json")  # the web server needs this before the settings are loaded


@contextmanager
def exit_with_one_line() -> Iterator[None]:
    """Report an invalid setting without a traceback, and end the process."""
    try:
        yield
    except ImproperlyConfigured as error:
        sys.exit(f"kiln: {error}")


def text(name: str, default: str = "", environ: Mapping[str, str] = os.environ) -> str:
    """Return the variable unchanged; an empty one counts as not set."""
    return environ.get(name, "").strip() or default


def flag(name: str, *, default: bool, environ: Mapping[str, str] = os.environ) -> bool:
    """Return a boolean."""
    value = text(name, environ=environ).lower()
    if not value:
        return default
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    raise ImproperlyConfigured(f"{name}={value!r} is not a boolean: use 1 or 0")


def integer(
    name: str, default: int, *, minimum: int = 0, environ: Mapping[str, str] = os.environ
) -> int:
    """Return an integer, at least ``minimum``."""
    value = text(name, environ=environ)
    if not value:
        return default
    try:
        number = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={value!r} is not a whole number") from None
    if number < minimum:
        raise ImproperlyConfigured(f"{name}={number} is less than {minimum}")
    return number


def choice(name: str, choices: Sequence[str], environ: Mapping[str, str] = os.environ) -> str:
    """Return one of these words, the first if nothing is set."""
    value = text(name, choices[0], environ)
    if value not in choices:
        raise ImproperlyConfigured(f"{name}={value!r} is not one of {', '.join(choices)}")
    return value


def token(name: str, *, least: int, environ: Mapping[str, str] = os.environ) -> str:
    """Return a secret of at least ``least`` characters without spaces; "" if none is set."""
    value = text(name, environ=environ)
    if value and (len(value) < least or not value.isascii() or " " in value):
        raise ImproperlyConfigured(f"{name} is weak: use at least {least} random characters")
    return value


def words(name: str, default: str = "", environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return a comma-separated list."""
    return [part.strip() for part in text(name, default, environ).split(",") if part.strip()]


def folder(name: str, default: Path | None, environ: Mapping[str, str] = os.environ) -> Path:
    """Return a folder's absolute path; it need not exist yet. Without a default, which is in the
    user's home, it must be set."""
    value = text(name, environ=environ)
    if value:
        return Path(value).expanduser().resolve()
    if default is None:
        raise ImproperlyConfigured(f"{name} is not set, and this user has no home: set it")
    return default


def site(name: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the URL of a site's front page, without the trailing slash."""
    value = text(name, environ=environ).rstrip("/")
    if value:
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query:
            raise ImproperlyConfigured(
                f"{name}={value!r} is not an address such as https://kiln.example"
            )
    return value


def broker(name: str, default: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the broker's URL; one that loses messages is rejected."""
    url = text(name, default, environ)
    scheme = url.partition(":")[0].partition("+")[0]
    if scheme in {"filesystem", "sqla", "sqlalchemy"}:
        raise ImproperlyConfigured(
            f"{name}={scheme}://: this broker loses messages; leave it empty for the database, or"
            " use redis:// or amqp://"
        )
    return url


def networks(name: str, environ: Mapping[str, str] = os.environ) -> list[IPv4Network | IPv6Network]:
    """Return networks such as ``10.1.0.0/16``, separated by commas."""
    try:
        return [ip_network(word) for word in words(name, environ=environ)]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}") from None


def database(url: str) -> dict[str, Any]:
    """Return Django's settings for a database URL, which libpq parses:
    ``postgresql://user:password@host:port/name?sslmode=require``, with several hosts if need be; a
    socket's folder is given as ``?host=/folder``.

    Raises ``ImproperlyConfigured`` for anything that is not PostgreSQL.
    """
    from psycopg import ProgrammingError, conninfo  # noqa: PLC0415 -- few settings need it

    if not url.startswith(("postgresql://", "postgres://")):
        raise ImproperlyConfigured("DATABASE_URL must begin with postgresql://")
    try:
        parts = {name: str(value) for name, value in conninfo.conninfo_to_dict(url).items()}
        host, port = parts.pop("host", ""), parts.pop("port", "")
        if "@" in host or not all(part.isdecimal() or not part for part in port.split(",")):
            raise ProgrammingError  # a part of the password
    except ProgrammingError:  # its message may show the password
        raise ImproperlyConfigured(
            "DATABASE_URL cannot be read: in a password, write / @ : # ? % as"
            " %2F %40 %3A %23 %3F %25"
        ) from None
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.pop("dbname", "kiln"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": host,
        "PORT": port,
        "OPTIONS": parts,
    }
