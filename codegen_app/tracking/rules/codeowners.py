"""CODEOWNERS files as rules: read, shown before anything is stored, and imported as a whole.

In such a file the last line that matches decides; in Kiln's list the first rule does. So the lines
become rules in reverse order. A line without an account here is a rule without an owner: its series
must not go to an owner of an earlier, wider line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser, User
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Lower

from codegen_app.accounts import audit
from codegen_app.tracking.models import PatternRule
from codegen_app.tracking.queries.alert_rows import triagers
from codegen_app.tracking.rules import book, resolution
from scheduler.errors import UserError
from scheduler.text import one_line
from scheduler.track.patterns import MAX_CHARACTERS, check_path_pattern

MAX_LINES = 500
MAX_NAME = 100


@dataclass(frozen=True)
class OwnerLine:
    """A line with a pattern: ``owner`` is the first of its owners who has an account and may
    triage, "" if there is none; ``unknown`` are the others that have no account, or may not."""

    number: int
    pattern: str
    owner: str
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class IgnoredLine:
    """A line that GitHub ignores, too, and why."""

    number: int
    text: str
    reason: str


@dataclass(frozen=True)
class OwnersFile:
    """A file as it would be imported, replacing ``replaced`` rules of its earlier import."""

    name: str
    repository: tuple[str, ...]
    lines: tuple[OwnerLine, ...]
    ignored: tuple[IgnoredLine, ...]
    replaced: int

    @property
    def without_owner(self) -> int:
        """The number of lines whose owner has no account."""
        return sum(bool(line.unknown) and not line.owner for line in self.lines)


def read_owners(name: str, repository: Sequence[str], text: str) -> OwnersFile:
    """Return what a file says, by line (3 queries). ``name`` identifies its import.

    Raises ``UserError`` without a name, for too many lines, and for a file without any pattern.
    """
    name = one_line(name.strip(), MAX_NAME)
    if not name:
        raise UserError("name: enter one, such as the repository; a later import replaces it")
    parsed: list[tuple[int, str, list[str]]] = []
    ignored: list[IgnoredLine] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = _words(line)
        if not words:
            continue
        pattern, *owners = words
        try:
            if len(pattern) > MAX_CHARACTERS:
                raise UserError(f"more than {MAX_CHARACTERS} characters")
            check_path_pattern(pattern)
        except UserError as error:
            reason = str(error).removeprefix(f"path {pattern}: ")
            ignored.append(IgnoredLine(number, one_line(line.strip(), 100), reason))
        else:
            parsed.append((number, pattern, owners))
    if len(parsed) > MAX_LINES:
        raise UserError(f"{len(parsed)} lines with a pattern, more than {MAX_LINES}")
    if not parsed:
        raise UserError("the file has no line with a pattern, such as: /kernels/ @ada")
    accounts = _accounts({owner for _, _, owners in parsed for owner in owners})
    lines = []
    for number, pattern, owners in parsed:
        known = [accounts[key] for owner in owners if (key := _account_key(owner)) in accounts]
        unknown = tuple(
            one_line(owner, 100) for owner in owners if _account_key(owner) not in accounts
        )
        lines.append(OwnerLine(number, pattern, known[0] if known else "", unknown))
    replaced = PatternRule.objects.filter(import_name=name, removed_at=None).count()
    return OwnersFile(name, tuple(repository), tuple(lines), tuple(ignored), replaced)


@transaction.atomic
def import_owners(file: OwnersFile, reason: str, by: AbstractBaseUser) -> int:
    """Store a file's rules in place of those of its earlier import, else at the end of the list;
    return how many.

    Raises ``UserError`` without a reason, and if there are too many rules.
    """
    reason = book.checked_reason(reason)
    resolution.lock_rules()
    rules = resolution.standing_rules()
    earlier = [row for row in rules if row.import_name == file.name]
    others = [row for row in rules if row.import_name != file.name]
    if len(others) + len(file.lines) > book.MAX_RULES:
        raise UserError(
            f"{len(file.lines)} rules and {len(others)} others: the limit is {book.MAX_RULES}"
        )
    place = rules.index(earlier[0]) if earlier else len(others)
    people = User.objects.in_bulk({line.owner for line in file.lines}, field_name="username")
    new = [
        PatternRule(
            position=0,
            repository=list(file.repository),
            path=[line.pattern],
            sets_owner=True,
            owner=people.get(line.owner),
            import_name=file.name,
            reason=reason,
            changed_by_id=audit.actor_id(by),
        )
        for line in reversed(file.lines)
    ]
    book.mark_removed(earlier)
    others[place:place] = PatternRule.objects.bulk_create(new, batch_size=500)
    book.store_order(others)
    resolution.restart_sweep()
    audit.note(by, "import owners", f"{file.name}: {len(new)} rules", reason)
    return len(new)


def _words(line: str) -> list[str]:
    """Return the words before a comment, which begins a line or follows a blank."""
    words: list[str] = []
    for word in line.split():
        if word.startswith("#"):
            break
        words.append(word)
    return words


def _account_key(owner: str) -> str:
    return owner.removeprefix("@").lower()


def _accounts(owners: set[str]) -> dict[str, str]:
    """Return the accounts that may triage by ``@name`` and e-mail address, in lower case (2
    queries)."""
    keys = {_account_key(owner) for owner in owners} - {""}  # accounts may have no address
    able = [key for key, (_, may) in triagers().items() if may]
    rows = User.objects.filter(pk__in=able).annotate(name=Lower("username"), mail=Lower("email"))
    found: Mapping[str, str] = {
        key: row.get_username()
        for row in rows.filter(Q(name__in=keys) | Q(mail__in=keys)).order_by("-username")
        for key in (row.mail, row.name)
        if key in keys
    }
    return dict(found)
