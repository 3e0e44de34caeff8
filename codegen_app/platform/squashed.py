"""Squashed migrations: a database has all of the migrations that one replaces, or none of them,
since their files are gone."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import lru_cache
from types import MappingProxyType

from django.db.migrations.loader import MigrationLoader

from scheduler.errors import UserError

Key = tuple[str, str]  # application and name


@lru_cache(maxsize=1)
def code_migrations() -> MappingProxyType[Key, frozenset[Key]]:
    """Return the migrations of this version, and for each the ones it replaces."""
    migrations = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    replaced = {
        key: frozenset((app, name) for app, name in migration.replaces)
        for key, migration in migrations.items()
    }
    return MappingProxyType(replaced)


def with_squashed(applied: AbstractSet[Key]) -> frozenset[Key]:
    """Return the applied migrations, and of the squashed ones, as Django does, those whose replaced
    migrations are all applied."""
    squashed = {key: replaced for key, replaced in code_migrations().items() if replaced}
    complete = {key for key, replaced in squashed.items() if replaced <= applied}
    return frozenset((applied - squashed.keys()) | complete)


def check_applied(applied: AbstractSet[Key], owner: str) -> None:
    """Raise ``UserError`` if only some of the migrations that a squashed one replaces are applied
    in ``owner`` (the database, the backup)."""
    for replaced in code_migrations().values():
        present = replaced & applied
        if present and present != replaced:
            raise UserError(
                f"{owner} has {len(present)} of the {len(replaced)} migrations up to"
                f" {'.'.join(max(replaced))}: upgrade first with the last commit that has this"
                " migration (deploy/README.md, Backups and upgrades), then with this one"
            )
