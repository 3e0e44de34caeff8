"""``manage.py restore FOLDER``: fill an empty installation from a backup."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from codegen_app.site.backups.backup import restore
from scheduler.errors import MachineError, UserError


class Command(BaseCommand):
    """Restores what ``backup`` wrote."""

    help = "Restore a backup into an empty database and storage."
    requires_system_checks: list[str] = []  # there is no table yet

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *_: Any, folder: Path, **__: Any) -> None:
        try:
            manifest = restore(folder, self.stdout.write)
        except (UserError, MachineError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"restored the backup of {manifest.made_at}: start the web server and the workers"
        )
