"""Creating a backup of a running installation, and filling an empty one from it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from codegen_app.platform import files, squashed
from codegen_app.platform.models import Artifact
from codegen_app.site.backups import database, load
from scheduler.errors import UserError
from scheduler.files import disk_errors, write_atomic
from scheduler.ir.codec import decode, make_codec
from scheduler.version import kiln_version

FORMAT = 1
_MANIFEST, _DUMP, _ARTIFACTS = "backup.json", "database.dump", "artifacts"
_PROGRESS_EVERY = 500  # files
_NAME = re.compile(r"sha256/[0-9a-f]{2}/([0-9a-f]{64})(\.[\w.]+)?")


@dataclass(frozen=True)
class Manifest:
    """``migrations`` are the applied ones, as ``app.name``; ``artifacts`` counts the files,
    ``missing`` has the digests that the storage lacked."""

    made_at: str
    kiln: str
    migrations: tuple[str, ...]
    artifacts: int
    missing: tuple[str, ...]


def read_manifest(folder: Path) -> Manifest:
    """Return the folder's manifest; raises ``UserError`` if it is no complete backup of this
    format."""
    file = folder / _MANIFEST
    try:
        content: Any = json.loads(file.read_text())
    except FileNotFoundError:
        raise UserError(f"{folder} holds no whole backup: it has no {_MANIFEST}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {error}") from None
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise UserError(f"{file} is of another format than {FORMAT}: use the Kiln that wrote it")
    return decode(make_codec(), content, Manifest, f"{file} is damaged")


def create_backup(folder: Path, say: Callable[[str], None]) -> Manifest:
    """Write the database as of one moment, then every artifact that it names.

    A folder with an earlier backup is updated: its artifacts stay, since their names are digests of
    their content. Raises ``UserError`` if the folder holds something else, ``MachineError`` if
    there is no room or the database cannot be read.
    """
    dump = folder / _DUMP
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_other = any(folder.iterdir()) and not dump.is_file()
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror or error}") from None
    if is_other:
        raise UserError(f"{folder} holds something else than a backup: name another folder")
    folder.chmod(0o700)  # it contains password hashes and keys
    made_at = timezone.now().isoformat(timespec="seconds")
    (folder / _MANIFEST).unlink(missing_ok=True)  # the folder holds no complete backup now
    with disk_errors("the backup", folder):
        part = dump.with_suffix(".part")
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SELECT pg_export_snapshot()")
            (snapshot,) = cursor.fetchone()
            artifacts = list(Artifact.objects.order_by("path").values_list("path", "digest"))
            migrations = database.applied_migrations()
            database.dump(part, snapshot)
        part.replace(dump)
        say(f"the database is written, {len(artifacts)} artifacts follow")
        missing = []
        for number, (path, digest) in enumerate(artifacts, 1):
            file = folder / _ARTIFACTS / path
            try:
                # A file of an earlier backup is complete: files get their names last.
                if not file.is_file():
                    with default_storage.open(path, "rb") as stored:
                        write_atomic(file, stored)
            except FileNotFoundError:
                missing.append(digest)
            if number % _PROGRESS_EVERY == 0:
                say(f"{number} of {len(artifacts)} artifacts")
        manifest = Manifest(
            made_at, kiln_version(), migrations, len(artifacts) - len(missing), tuple(missing)
        )
        text = json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1) + "\n"
        write_atomic(folder / _MANIFEST, text.encode())
    return manifest


def restore(folder: Path, say: Callable[[str], None]) -> Manifest:
    """Copy the artifacts into the storage, fill the database, and migrate it to this Kiln.

    Work that was running when the backup was created is requeued once its lease expires. Raises
    ``UserError``, with nothing written, if the folder holds no complete backup, one of a newer Kiln
    or one with only some of the migrations that were squashed, or if the database has tables.
    Raises ``UserError`` for rows that are not Kiln's, and ``MachineError`` if there is no room or
    PostgreSQL refuses; the database is then empty, as before.
    """
    manifest = read_manifest(folder)
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
    dump, root = folder / _DUMP, folder / _ARTIFACTS
    if not dump.is_file():
        raise UserError(f"{dump} is missing: the backup is not whole")
    # Files that no backup wrote are skipped.
    artifacts = [
        (match, file)
        for file in sorted(root.rglob("*"))
        if (match := _NAME.fullmatch(file.relative_to(root).as_posix()))
        and file.is_file()
        and not file.is_symlink()
    ]
    if len(artifacts) < manifest.artifacts:
        raise UserError(
            f"{folder} has {len(artifacts)} of {manifest.artifacts} artifacts: the backup is not"
            " whole"
        )
    for number, (match, file) in enumerate(artifacts, 1):
        path, digest = match[0], match[1]
        if not files.is_intact(path, digest):
            with file.open("rb") as content:
                files.write_file(path, content)
            if not files.is_intact(path, digest):
                raise UserError(f"{file} is damaged: its content is not that of its name")
        if number % _PROGRESS_EVERY == 0:
            say(f"{number} of {len(artifacts)} artifacts")
    load.load(dump, squashed.with_squashed(applied))
    say("the database is filled")
    connection.close()
    call_command("migrate", interactive=False, verbosity=0)
    return manifest
