"""``manage.py sql_role --name NAME``: a role of PostgreSQL that reads Kiln's views."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from codegen_app.tracking.sql import roles
from codegen_app.tracking.sql.definitions import SCHEMA
from scheduler.errors import UserError


class Command(BaseCommand):
    """Creates or drops a role, or lists the roles."""

    help = f"Create a read-only role for the views of the schema {SCHEMA}: for Grafana, notebooks."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--name", help="the role's name; without it, list the roles")
        parser.add_argument("--drop", action="store_true", help="drop the role")

    def handle(self, *_: Any, name: str | None, drop: bool, **__: Any) -> None:
        if name is None:
            if drop:
                raise CommandError("--drop needs --name")
            self.stdout.write("\n".join(roles.role_names()) or "there is no role yet: pass --name")
            return
        try:
            if drop:
                roles.drop_role(name)
                self.stdout.write(f"role {name} was dropped")
                return
            address = roles.create_role(name)
        except UserError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(address)
        self.stderr.write("The password is shown only now. Backups do not contain the role.")
        if "host=" in address:
            self.stderr.write(
                "This PostgreSQL listens on a socket only, which the account that runs Kiln can"
                " enter: other accounts and hosts need a PostgreSQL of your own (DATABASE_URL)."
            )
