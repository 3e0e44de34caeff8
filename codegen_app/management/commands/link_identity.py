"""``manage.py link_identity NAME SUBJECT``: whose an account is at the provider."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from codegen_app.models import Identity


class Command(BaseCommand):
    """Links, or ends a link. Nobody is linked by name or e-mail address: those change hands."""

    help = "Let who is SUBJECT at the provider sign in to the account NAME."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Whom, and to what."""
        parser.add_argument("name", help="the account here")
        parser.add_argument("subject", help="what the provider calls the person (claim sub)")
        parser.add_argument("--remove", action="store_true", help="end the link")

    def handle(self, *_: Any, name: str, subject: str, remove: bool, **__: Any) -> None:
        """One line."""
        if settings.OIDC is None:
            raise CommandError("KILN_OIDC_ISSUER is not set: there is no provider")
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"there is no account {name}")
        issuer = settings.OIDC.issuer
        found = Identity.objects.filter(issuer=issuer, subject=subject).first()
        if remove:
            if found is None or found.user != user:
                raise CommandError(f"{subject} is not linked to {name}")
            found.delete()
            self.stdout.write(f"{subject} signs in to {name} no more")
            return
        if found is not None:
            raise CommandError(f"{subject} signs in to {found.user.get_username()} already")
        Identity.objects.create(user=user, issuer=issuer, subject=subject)
        self.stdout.write(f"{subject} signs in to {name}")
