"""``manage.py link_identity NAME SUBJECT``: whose an account is at the provider."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from codegen_app.accounts.models import Identity


class Command(BaseCommand):
    """Links, or ends a link. Nobody is linked by name or e-mail address: those change hands."""

    help = "Link the user SUBJECT of the provider to the account NAME."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the Kiln account")
        parser.add_argument("subject", help="the provider's id of the user (claim sub)")
        parser.add_argument("--remove", action="store_true", help="remove the link")

    def handle(self, *_: Any, name: str, subject: str, remove: bool, **__: Any) -> None:
        if settings.OIDC is None:
            raise CommandError("no provider: set KILN_OIDC_ISSUER")
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"no account {name}")
        issuer = settings.OIDC.issuer
        identity = Identity.objects.filter(issuer=issuer, subject=subject).first()
        if remove:
            if identity is None or identity.user != user:
                raise CommandError(f"{subject} is not linked to {name}")
            identity.delete()
            self.stdout.write(f"{subject} is no longer linked to {name}")
            return
        if identity is not None:
            raise CommandError(f"{subject} is already linked to {identity.user.get_username()}")
        Identity.objects.create(user=user, issuer=issuer, subject=subject)
        self.stdout.write(f"{subject} is linked to {name}")
