"""Accounts of people who sign in with the identity provider."""

from __future__ import annotations

import hashlib
import logging
import re

from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction

from codegen_app.accounts.models import Identity
from codegen_app.accounts.oidc import Person, SignInError
from codegen_app.platform.config.sign_in import Provider

_INVALID_IN_USERNAME = re.compile(r"[^A-Za-z0-9_.@+-]")
_TRIES = 20

log = logging.getLogger(__name__)


def get_or_create_account(provider: Provider, person: Person) -> User:
    """Return the account with this identity, or a new one, which may only read.

    An account with the same name or e-mail address belongs to somebody else. Raises ``SignInError``
    for a closed account.
    """
    with transaction.atomic():
        user = _find_account(provider, person) or _create_account(provider, person)
        if not user.is_active:
            raise SignInError("Your account here is closed", counts=True, subject=person.subject)
        _give_groups(user, provider, person)
    return user


def _find_account(provider: Provider, person: Person) -> User | None:
    rows = Identity.objects.filter(issuer=provider.issuer, subject=person.subject)
    identity = rows.select_related("user").first()
    return identity.user if identity else None


def _create_account(provider: Provider, person: Person) -> User:
    digest = hashlib.sha256(person.subject.encode()).hexdigest()[:8]
    preferred = _INVALID_IN_USERNAME.sub("", person.username)[:120] or f"user-{digest}"
    # The first free name is used.
    for name in (
        preferred,
        *(f"{preferred}-{number}" for number in range(2, _TRIES)),
        f"{preferred}-{digest}",
    ):
        try:
            with transaction.atomic():
                if User.objects.filter(username__iexact=name).exists():
                    continue
                user = User.objects.create_user(name, person.email)  # without a password
                identity = {"issuer": provider.issuer, "subject": person.subject}
                Identity.objects.create(user=user, **identity)
                return user
        except IntegrityError:  # the name was just taken, or this person signed in twice at once
            if existing := _find_account(provider, person):
                return existing
    raise SignInError(f"No name is free for an account called {preferred}: ask an administrator")


def _give_groups(user: User, provider: Provider, person: Person) -> None:
    """Set the groups that the provider decides on as it says; other groups stay as they are."""
    decided = set(provider.groups.values())
    granted = {group for value, group in provider.groups.items() if value in person.groups}
    rows = {group.name: group for group in Group.objects.filter(name__in=decided)}
    if missing := decided - set(rows):
        log.warning("KILN_OIDC_GROUPS: there is no group %s", ", ".join(sorted(missing)))
    present = set(user.groups.filter(name__in=decided).values_list("name", flat=True))
    if added := granted & set(rows) - present:
        user.groups.add(*(rows[name] for name in sorted(added)))
    if removed := present - granted:
        user.groups.remove(*(rows[name] for name in sorted(removed)))
