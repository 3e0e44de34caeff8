"""``manage.py backup FOLDER``: the database and all artifacts, while everything goes on."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from codegen_app.site.backups.backup import create_backup
from scheduler.errors import MachineError, UserError


class Command(BaseCommand):
    """Takes a backup, or brings an earlier one up to date."""

    help = "Write a backup to a folder, or update the backup in it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *_: Any, folder: Path, **__: Any) -> None:
        try:
            backup = create_backup(folder, self.stdout.write)
        except (UserError, MachineError) as error:
            raise CommandError(str(error)) from None
        for digest in backup.missing:
            self.stderr.write(f"artifact {digest} is missing from the storage")
        self.stdout.write(f"{folder} holds the backup of {backup.made_at}")
