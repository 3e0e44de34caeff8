"""Creating a backup of a running installation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.utils import timezone

from codegen_app.platform.models import Artifact
from codegen_app.site.backups import contents, database
from codegen_app.site.backups.contents import Manifest
from scheduler.errors import UserError
from scheduler.files import disk_errors, write_atomic
from scheduler.version import kiln_version

_PROGRESS_EVERY = 500  # files


def create_backup(folder: Path, say: Callable[[str], None]) -> Manifest:
    """Write the database as of one moment, then every artifact that it names.

    A folder with an earlier backup is updated: its artifacts stay, since their names are digests of
    their content. Raises ``UserError`` if the folder holds something else, ``MachineError`` if
    there is no room or the database cannot be read.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_other = any(folder.iterdir()) and not contents.dump_file(folder).is_file()
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror or error}") from None
    if is_other:
        raise UserError(f"{folder} holds something else than a backup: name another folder")
    folder.chmod(0o700)  # it contains password hashes and keys
    made_at = timezone.now().isoformat(timespec="seconds")
    contents.remove_manifest(folder)
    with disk_errors("the backup", folder):
        part = contents.dump_file(folder).with_suffix(".part")
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SELECT pg_export_snapshot()")
            (snapshot,) = cursor.fetchone()
            artifacts = list(Artifact.objects.order_by("path").values_list("path", "digest"))
            migrations = database.applied_migrations()
            database.dump(part, snapshot)
        part.replace(contents.dump_file(folder))
        say(f"the database is written, {len(artifacts)} artifacts follow")
        missing = []
        for number, (path, digest) in enumerate(artifacts, 1):
            if not _copy(path, contents.artifact_file(folder, path)):
                missing.append(digest)
            if number % _PROGRESS_EVERY == 0:
                say(f"{number} of {len(artifacts)} artifacts")
        manifest = Manifest(
            made_at, kiln_version(), migrations, len(artifacts) - len(missing), tuple(missing)
        )
        contents.write_manifest(folder, manifest)
    return manifest


def _copy(path: str, to: Path) -> bool:
    """Copy a file; return whether it exists now. A file of an earlier backup is complete: files get
    their names last."""
    if to.is_file():
        return True
    try:
        with default_storage.open(path, "rb") as stored:
            write_atomic(to, stored)
    except FileNotFoundError:
        return False
    return True
