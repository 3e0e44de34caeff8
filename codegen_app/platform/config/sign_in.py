"""The organisation's own sign-in provider (OpenID Connect, ADR 0033), from the environment.

``KILN_OIDC_ISSUER`` enables it; without it none of the others may be set.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from codegen_app.platform.config import env

_PREFIX = "KILN_OIDC_"
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True)
class Provider:
    """``name`` is on the button. ``domains``: of allowed e-mail addresses; empty: any. ``groups``:
    the group here for each value of the claim ``groups_claim``."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str
    domains: tuple[str, ...] = ()
    groups_claim: str = "groups"
    groups: Mapping[str, str] = field(default_factory=dict)


def provider(environ: Mapping[str, str] = os.environ) -> Provider | None:
    """Return the provider, or None. Raises ``ImproperlyConfigured`` with the variable that is
    wrong, missing, or unused."""
    issuer = env.text("KILN_OIDC_ISSUER", environ=environ)
    if not issuer:
        if unused := sorted(name for name in environ if name.startswith(_PREFIX) and environ[name]):
            raise ImproperlyConfigured(f"{unused[0]} is set, KILN_OIDC_ISSUER is not: set both")
        return None
    if find_spec("authlib") is None:
        raise ImproperlyConfigured("KILN_OIDC_ISSUER needs the extra: pip install 'kiln[oidc]'")
    _needed("KILN_SITE_URL", env.site("KILN_SITE_URL", environ))  # the provider redirects there
    url = urlsplit(issuer)
    secure = url.scheme == "https" or (url.scheme == "http" and url.hostname in _LOOPBACK)
    if not secure or not url.hostname or url.query or url.fragment:
        raise ImproperlyConfigured(
            f"KILN_OIDC_ISSUER={issuer!r} is not an issuer such as"
            " https://login.example/realms/team"
        )
    client_id = _needed("KILN_OIDC_CLIENT_ID", env.text("KILN_OIDC_CLIENT_ID", "", environ))
    secret = env.text("KILN_OIDC_CLIENT_SECRET", "", environ)
    domains = env.words("KILN_OIDC_DOMAINS", environ=environ)
    for domain in domains:
        if "@" in domain or "." not in domain or "*" in domain:
            raise ImproperlyConfigured(f"KILN_OIDC_DOMAINS: {domain!r} is not a domain")
    return Provider(
        issuer=issuer,  # unchanged: the provider's must be identical
        client_id=client_id,
        client_secret=_needed("KILN_OIDC_CLIENT_SECRET", secret),
        name=env.text("KILN_OIDC_NAME", url.hostname, environ),
        domains=tuple(domain.lower() for domain in domains),
        groups_claim=env.text("KILN_OIDC_GROUPS_CLAIM", "groups", environ),
        groups=_groups(env.words("KILN_OIDC_GROUPS", environ=environ)),
    )


def _needed(name: str, value: str) -> str:
    if not value:
        raise ImproperlyConfigured(f"KILN_OIDC_ISSUER is set, {name} is not: set both")
    return value


def _groups(pairs: list[str]) -> dict[str, str]:
    groups = {}
    for pair in pairs:
        value, separator, group = pair.partition("=")
        if not separator or not value.strip() or not group.strip():
            raise ImproperlyConfigured(
                f"KILN_OIDC_GROUPS: {pair!r} is not a pair such as kernel-team=Builders"
            )
        groups[value.strip()] = group.strip()
    return groups
