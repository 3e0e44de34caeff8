"""Filling an empty installation from a backup."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from django.core.management import call_command
from django.db import connection

from codegen_app.platform import files, squashed
from codegen_app.site.backups import contents, database, load
from codegen_app.site.backups.contents import Manifest
from scheduler.errors import UserError

_PROGRESS_EVERY = 500  # files


def restore(folder: Path, say: Callable[[str], None]) -> Manifest:
    """Copy the artifacts into the storage, fill the database, and migrate it to this Kiln.

    Work that was running when the backup was created is requeued once its lease expires. Raises
    ``UserError``, with nothing written, if the folder holds no complete backup, one of a newer Kiln
    or one with only some of the migrations that were squashed, or if the database has tables.
    Raises ``UserError`` for rows that are not Kiln's, and ``MachineError`` if there is no room or
    PostgreSQL refuses; the database is then empty, as before.
    """
    manifest = contents.read_manifest(folder)
    newer = sorted({*manifest.migrations} - database.known_migrations())
    if newer:
        raise UserError(
            f"the backup was taken by a newer Kiln ({manifest.kiln}, migration {newer[-1]}):"
            " restore it with that one"
        )
    names = (name.partition(".") for name in manifest.migrations)
    applied = {(app, name) for app, _, name in names}
    squashed.check_applied(applied, "the backup")
    if not database.is_empty():
        name = connection.settings_dict["NAME"]
        raise UserError(f"the database {name} has tables already: restore into an empty one")
    if not contents.dump_file(folder).is_file():
        raise UserError(f"{contents.dump_file(folder)} is missing: the backup is not whole")
    artifacts = list(contents.artifact_files(folder))
    if len(artifacts) < manifest.artifacts:
        raise UserError(
            f"{folder} has {len(artifacts)} of {manifest.artifacts} artifacts: the backup is not"
            " whole"
        )
    for number, (path, digest, file) in enumerate(artifacts, 1):
        if not files.is_intact(path, digest):
            with file.open("rb") as content:
                files.write_file(path, content)
            if not files.is_intact(path, digest):
                raise UserError(f"{file} is damaged: its content is not that of its name")
        if number % _PROGRESS_EVERY == 0:
            say(f"{number} of {len(artifacts)} artifacts")
    load.load(contents.dump_file(folder), squashed.with_squashed(applied))
    say("the database is filled")
    connection.close()
    call_command("migrate", interactive=False, verbosity=0)
    return manifest
