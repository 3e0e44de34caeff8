"""Commits of alerts' windows, from Git mirrors that the operator keeps in a folder.

The periodic round reads them, so that no page waits for Git. A mirror may be behind: what it lacks
is tried again for a day.
"""

from __future__ import annotations

import logging
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from codegen_app.tracking.models import Alert, AlertState
from scheduler.errors import MachineError
from scheduler.sandbox import Sandbox
from scheduler.sandbox.model import SYSTEM_LIBRARIES
from scheduler.sandbox.process import Limits, run
from scheduler.text import one_line

MAX_ALERTS = 20
MAX_COMMITS = 200
_TRIED_FOR = timedelta(days=1)
_LIMITS = Limits(seconds=10, memory_bytes=1 << 30)
_REVISION = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z_/+-]|\.(?!\.)){0,99}")
_ROW = re.compile(
    r"([0-9a-f]{40,64})\x1f([0-9a-f]*)[^\x1f]*\x1f([^\x1f]+)\x1f([^\x1f]*)\x1f(.*)", re.DOTALL
)
# Texts are padded and cut to a width, so that the output has a limit.
_FORMAT = "%H%x1f%P%x1f%cI%x1f%<(100,trunc)%an%x1f%<(200,trunc)%s"
log = logging.getLogger(__name__)


def mirror_name(repository: str) -> str:
    """Return the name of a repository's mirror: ``github.com_team_kernels.git``."""
    address = repository.strip().rstrip("/").removesuffix(".git")
    address = re.sub(r"^[a-z+]+://", "", address)
    host, at, rest = address.partition("@")
    address = rest if at and "/" not in host else address
    return re.sub(r"[^A-Za-z0-9.-]+", "_", address).strip("._-") + ".git"


def read_waiting() -> int:
    """Read the commits of some alerts whose window is new; return of how many. Nothing is read
    without ``KILN_GIT_MIRRORS``."""
    folder = settings.GIT_MIRRORS
    if folder is None:
        return 0
    waiting = Alert.objects.filter(
        commits__isnull=True,
        good_revision__isnull=False,
        changed_at__gte=timezone.now() - _TRIED_FOR,
    ).exclude(state=AlertState.HISTORY)
    repositories = waiting.order_by().values_list("revision__repository", flat=True).distinct()
    mirrors = {name: mirror for name in repositories if (mirror := _mirror_of(folder, name))}
    # In any order: those whose commits a mirror lacks do not keep others waiting.
    rows = waiting.filter(revision__repository__in=mirrors).order_by("?")
    count = 0
    for alert in rows.select_related("revision", "good_revision")[:MAX_ALERTS]:
        good, bad = alert.good_revision, alert.revision
        assert good is not None
        assert bad is not None
        mirror = mirrors[bad.repository]
        try:
            commits = read_commits(mirror, good.name, bad.name)
        except MachineError as error:
            log.warning("commits of alert %d: %s", alert.pk, error)
            continue
        # Unless its window has changed meanwhile.
        same = Alert.objects.filter(pk=alert.pk, revision=bad, good_revision=good)
        count += same.update(commits=commits)
    return count


def _mirror_of(folder: Path, repository: str) -> Path | None:
    """Return the mirror of a repository; None if there is none."""
    mirror = folder / mirror_name(repository)
    try:
        return mirror if repository and mirror.is_dir() else None
    except OSError:  # no file may have so long a name
        return None


def read_commits(mirror: Path, good: str, bad: str) -> dict[str, Any]:
    """Return the commits after one revision up to another: how many, and the newest
    ``MAX_COMMITS``, each with name, first parent, time, author and subject. Raises
    ``MachineError``."""
    for name in (good, bad):
        if not is_revision_name(name):
            raise MachineError(f"{one_line(name)!r} is not the name of a commit, branch or tag")
    between = f"{good}..{bad}"
    count = _git(mirror, "rev-list", "--count", "--end-of-options", between).strip()
    if not count.isdecimal():
        raise MachineError(f"{mirror.name}: {one_line(count)}")
    log_options = ("--no-color", "--no-show-signature", "--no-patch", "-z")
    limit = (f"--max-count={MAX_COMMITS}", f"--format={_FORMAT}")
    text = _git(mirror, "log", *log_options, *limit, "--end-of-options", between)
    rows = (_ROW.fullmatch(row.strip()) for row in text.split("\0"))
    commits = [
        {
            "name": row[1],
            "parent": row[2],
            "at": _commit_time(row[3]),
            "author": row[4].strip(),
            "subject": row[5].strip(),
        }
        for row in rows
        if row is not None
    ]
    return {"count": int(count), "commits": commits}


def is_revision_name(name: str) -> bool:
    """Return whether a text can name a commit, branch or tag, and is no option of a command."""
    return _REVISION.fullmatch(name) is not None


def _commit_time(text: str) -> str | None:
    """Return the time of a commit; None for one that only Git knows, such as the year 10000."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None


def _git(mirror: Path, *arguments: str) -> str:
    """Return the output of a Git command in a mirror, which it cannot write. Raises
    ``MachineError``."""
    git = shutil.which("git", path=settings.COMPILER_PATH or None)
    if git is None:
        raise MachineError("KILN_GIT_MIRRORS is set, but git is not installed on this host")
    program = Path(git).resolve()
    environment = {
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_PAGER": "",
    }
    folder = mirror.resolve()
    options = ("--no-pager", "-c", f"safe.directory={folder}", f"--git-dir={folder}")
    try:
        process = run(
            (str(program), *options, *arguments),
            cwd=folder,
            environment=environment,
            limits=_LIMITS,
            policy=Sandbox(read=(folder, Path("/dev/null")), execute=(program, *SYSTEM_LIBRARIES)),
        )
    except OSError as error:
        raise MachineError(f"{mirror.name}: git could not be started: {error}") from None
    if not process.ok:
        reason = process.failure or one_line(process.output)[:300]
        raise MachineError(f"{mirror.name}: {reason}")
    return process.output
