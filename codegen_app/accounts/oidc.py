"""OpenID Connect: redirecting people to the provider, and verifying its response.

Authorization code with PKCE, state and nonce; the ID token's signature, issuer, audience, times and
nonce are checked (Authlib). The state is in a signed cookie of ten minutes, so that a mere request
writes nothing here.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.django_client import DjangoOAuth2App
from django.conf import settings
from django.core import signing
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare
from joserfc.errors import JoseError

from codegen_app.platform.config.sign_in import Provider
from scheduler.errors import UserError
from scheduler.text import one_line

COOKIE_S = 600
_SALT = "codegen_app.accounts.oidc"
_TIMEOUT_S = 5
_METADATA_TTL_S = 3600  # of the provider's metadata
_LEEWAY_S = 60  # tolerance for clocks
_REQUEST_SLOTS = threading.BoundedSemaphore(4)  # concurrent requests to the provider, per process
# Signed with the provider's key: a token that is signed with our secret, or not at all, is invalid.
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
_TIMES = {"exp", "iat", "nbf"}
_ERROR_CODE = re.compile(r"[a-z_]{1,40}")

log = logging.getLogger(__name__)


class SignInError(UserError):
    """Why nobody was logged in, in one line for them. ``counts``: as a failed login does."""

    def __init__(self, line: str, *, counts: bool = False, subject: str = "") -> None:
        super().__init__(line)
        self.counts, self.subject = counts, subject


@dataclass(frozen=True)
class Person:
    """The provider's claims about a person; ``email`` only if it is verified."""

    subject: str
    username: str
    email: str
    groups: frozenset[str]


@dataclass(frozen=True)
class PendingSignIn:
    """The state that the cookie brings back."""

    state: str
    nonce: str
    verifier: str
    after: str  # the page to return to

    def signed_cookie(self) -> str:
        """Return the cookie's text, signed by us."""
        return signing.dumps([self.state, self.nonce, self.verifier, self.after], salt=_SALT)


def cookie_name() -> str:
    """Return the cookie's name, which restricts it to this host if it is sent by HTTPS alone."""
    return "__Host-kiln-sign-in" if settings.HTTPS else "kiln-sign-in"


def start_sign_in(callback: str, after: str) -> tuple[str, PendingSignIn]:
    """Return the provider's URL to redirect to, and the state to bring back. Raises
    ``SignInError``."""
    with _provider_request():
        authorization = _client().create_authorization_url(callback)
    return authorization["url"], PendingSignIn(
        authorization["state"], authorization["nonce"], authorization["code_verifier"], after
    )


def pending_sign_in(request: HttpRequest) -> PendingSignIn | None:
    """Return the cookie's state; None without one, or if it is too old, or not ours."""
    try:
        text = request.COOKIES.get(cookie_name(), "")
        return PendingSignIn(*signing.loads(text, salt=_SALT, max_age=COOKIE_S))
    except (signing.BadSignature, TypeError, ValueError):
        return None


def finish_sign_in(request: HttpRequest, pending: PendingSignIn | None, callback: str) -> Person:
    """Return the person who came back from the provider. Raises ``SignInError``."""
    provider = _provider()
    state = request.GET.get("state", "")
    if pending is None or not constant_time_compare(state, pending.state):
        raise SignInError(
            "This sign-in was not started here, is over, or took more than ten minutes: start again"
        )
    if (error := request.GET.get("error")) is not None:
        reason = error if _ERROR_CODE.fullmatch(error) else "an error"
        raise SignInError(f"{provider.name} did not let you in: {reason}", counts=True)
    if request.GET.get("iss", provider.issuer) != provider.issuer:
        raise SignInError("The response is from another provider: start again", counts=True)
    with _provider_request():
        claims = _claims(request.GET.get("code", ""), pending, callback)
    return _person(provider, claims)


def check_provider() -> None:
    """Fetch the provider's metadata. Raises ``SignInError`` if they do not fit the settings."""
    with _provider_request():
        _client(kept=False)


def _provider() -> Provider:
    return cast(Provider, settings.OIDC)


def _claims(code: str, pending: PendingSignIn, callback: str) -> dict[str, Any]:
    client = _client()
    token = client.fetch_access_token(callback, code=code, code_verifier=pending.verifier)
    id_token = client.parse_id_token(token, nonce=pending.nonce, leeway=_LEEWAY_S)
    if not id_token or not isinstance(id_token.get("sub"), str) or not id_token["sub"]:
        raise SignInError(f"{_provider().name} sent no user identity", counts=True)
    claims = dict(id_token)
    groups = {_provider().groups_claim} if _provider().groups else set()
    required = {"email", "preferred_username"} | groups
    if required - set(claims) and client.server_metadata.get("userinfo_endpoint"):
        userinfo = client.userinfo(token=token)
        if userinfo.get("sub") != claims["sub"]:
            raise SignInError(f"{_provider().name} sent two different user identities", counts=True)
        claims = {**userinfo, **claims}
    return claims


def _person(provider: Provider, claims: dict[str, Any]) -> Person:
    subject = claims["sub"]
    verified = claims.get("email_verified") in (True, "true")
    email = str(claims.get("email") or "") if verified else ""
    local, _, domain = email.rpartition("@")
    if provider.domains and not (local and domain.lower() in provider.domains):
        raise SignInError(
            f"Sign-in requires a verified e-mail address of {' or '.join(provider.domains)}",
            counts=True,
            subject=subject,
        )
    groups = claims.get(provider.groups_claim) or ()
    groups = [groups] if isinstance(groups, str) else groups
    if len(subject) > 255 or not isinstance(groups, list | tuple):
        raise SignInError(f"{provider.name} sent an unreadable response", counts=True)
    name = str(claims.get("preferred_username") or email)
    return Person(subject, name, email[:254], frozenset(map(str, groups)))


_client_cache: dict[Provider | str, Any] = {}


def _client(*, kept: bool = True) -> Any:
    """Return a client with the provider's metadata, which are fetched again after an hour."""
    provider = _provider()
    client, until, cached_provider = _client_cache.get("client", (None, 0.0, None))
    if kept and cached_provider == provider and time.monotonic() < until:
        return client
    client = DjangoOAuth2App(
        None,
        name="kiln",
        client_id=provider.client_id,
        client_secret=provider.client_secret,
        server_metadata_url=f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={
            "scope": "openid profile email",
            "code_challenge_method": "S256",
            "default_timeout": _TIMEOUT_S,
        },
    )
    _check_metadata(provider, client.load_server_metadata())
    _client_cache["client"] = (client, time.monotonic() + _METADATA_TTL_S, provider)
    return client


def _check_metadata(provider: Provider, metadata: dict[str, Any]) -> None:
    """Refuse another provider's metadata, and URLs without TLS."""
    if metadata.get("issuer") != provider.issuer:
        raise SignInError(
            f"KILN_OIDC_ISSUER is {provider.issuer}, the provider calls itself"
            f" {one_line(str(metadata.get('issuer')), 200)}: they must be the same to the letter"
        )
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        address = str(metadata.get(name, ""))
        if not address.startswith(f"{provider.issuer.partition(':')[0]}://"):
            raise SignInError(f"the provider's {name} is missing, or not as secure as its issuer")
    offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
    accepted = [name for name in offered if name in _ALGORITHMS]
    if not accepted:
        raise SignInError("the provider signs with no key of its own: let it use RS256")
    metadata["id_token_signing_alg_values_supported"] = accepted


@contextmanager
def _provider_request() -> Iterator[None]:
    """Limit concurrent requests, and turn each failure into one line; the log has the details that
    are not public."""
    name = _provider().name
    if not _REQUEST_SLOTS.acquire(blocking=False):
        raise SignInError("Too many sign-ins at once: try again in a moment")
    try:
        yield
    except SignInError:
        raise
    except requests.RequestException as error:
        log.warning("sign-in: %s", one_line(str(error)))
        raise SignInError(f"{name} does not answer: try again") from error
    except (AuthlibBaseError, JoseError, KeyError, TypeError, ValueError, RuntimeError) as error:
        log.warning("sign-in: %s: %s", type(error).__name__, one_line(str(error)))
        if getattr(error, "claim", "") in _TIMES:
            line = (
                f"The response of {name} is too old or too new: its clock and this server's differ"
            )
        else:
            line = f"The response of {name} is invalid: see the server's log"
        raise SignInError(line, counts=True) from error
    finally:
        _REQUEST_SLOTS.release()
