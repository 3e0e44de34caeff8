"""The exceptions: uses that are known not to pass, each with its reason."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import torch
from torch.torch_version import TorchVersion

from tests.benchmarks.opinfo.judging import Verdict

_FILE = Path(__file__).with_name("exceptions.toml")


@dataclass(frozen=True)
class Exempt:
    """Uses of ops whose name fits one of ``ops`` (shell patterns), of these types (none: all),
    where the failure's text contains ``text`` (a regular expression), and why; of torch ``before``
    a version alone (none: of any)."""

    ops: tuple[str, ...]
    reason: str
    dtypes: tuple[str, ...] = ()
    text: str = ""
    before: str = ""

    def names(self, verdict: Verdict) -> bool:
        """Whether it is of this op and type."""
        of_type = not self.dtypes or verdict.dtype in self.dtypes
        return of_type and any(fnmatchcase(verdict.op, pattern) for pattern in self.ops)

    def covers(self, verdict: Verdict) -> bool:
        """Whether this failure is the one that is known."""
        found = re.search(self.text, f"{verdict.failed}: {verdict.reason}")
        return self.names(verdict) and found is not None


@cache
def exceptions() -> tuple[Exempt, ...]:
    """All of the file."""
    rows = tomllib.loads(_FILE.read_text()).get("exception", [])
    return tuple(
        Exempt(
            ops=tuple(row["ops"]),
            reason=row["reason"],
            dtypes=tuple(row.get("dtypes", ())),
            text=row.get("text", ""),
            before=row.get("before", ""),
        )
        for row in rows
    )


def exempt(verdict: Verdict) -> Exempt | None:
    """The exception that a failure is, if it is one."""
    return next((one for one in exceptions() if one.covers(verdict)), None)


def needless(verdicts: Sequence[Verdict]) -> Iterable[Exempt]:
    """Exceptions whose uses were tried and all passed: they are to be taken out, but those of
    torch before this one."""
    judged = [verdict for verdict in verdicts if not verdict.not_exported]
    for one in exceptions():
        if one.before and torch.__version__ >= TorchVersion(one.before):
            continue
        tried = [verdict for verdict in judged if one.names(verdict)]
        if tried and not any(verdict.failed and one.covers(verdict) for verdict in tried):
            yield one
