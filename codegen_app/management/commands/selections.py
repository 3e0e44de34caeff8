"""``manage.py selections export|import``: which kernel serves each problem, as JSON."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from codegen_app.tuning.services import selection_io
from scheduler.errors import UserError
from scheduler.text import one_line


class Command(BaseCommand):
    """Take choices along to another installation."""

    help = "Export the current selections, or import selections from a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("do", choices=("export", "import"))
        parser.add_argument(
            "file", type=Path, nargs="?", help="file (default for export: standard output)"
        )
        parser.add_argument(
            "--why", default="from the command line", help="reason for the audit log"
        )

    def handle(self, **options: Any) -> None:
        file: Path | None = options["file"]
        if options["do"] == "import" and file is None:
            raise CommandError("give the file to import")
        try:
            if options["do"] == "export":
                content = selection_io.export()
                text = json.dumps(content, indent=1, ensure_ascii=False)
                if file is None:
                    self.stdout.write(text)
                    return
                file.write_text(f"{text}\n", encoding="utf-8")
                self.stdout.write(f"{len(content['selections'])} selections are in {file}")
            elif file is not None:
                if file.stat().st_size > settings.SELECTIONS_FILE_MAX_BYTES:
                    limit = settings.SELECTIONS_FILE_MAX_BYTES >> 20
                    raise CommandError(f"{file} has more than {limit} MiB")
                imported = selection_io.import_text(file.read_bytes(), None, options["why"])
                self.stdout.write(
                    f"{imported.new} new selections, {imported.known} already selected"
                )
                for line in imported.skipped:
                    self.stdout.write(f"skipped: {one_line(line)}")
        except UserError as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from None
