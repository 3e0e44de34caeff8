"""A header that a build's instructions were inlined from: its text, and the instructions per
line."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from codegen_app.kernels.models import Build
from codegen_app.kernels.pages.kernel.query import kernel_listing
from scheduler.build.sandbox_paths import HEADER_ROOT


@dataclass(frozen=True)
class HeaderPage:
    """A header as this Kiln has it. ``is_same`` says whether the build was made with exactly that
    text, None if the compiler recorded no digest. ``counts`` has the number of the build's
    instructions from each line, ``first`` the first listing line among them."""

    kernel: str
    build: int
    target: str
    file: str
    text: str
    is_same: bool | None
    counts: Mapping[int, int]
    first: Mapping[int, int]

    @property
    def instructions(self) -> int:
        """The number of the build's instructions from this header."""
        return sum(self.counts.values())


def header_page(kernel: str, build: int, file: str) -> HeaderPage:
    """Return one of our headers (2 queries). Raises ``Build.DoesNotExist``, and
    ``FileNotFoundError`` if the build has no instructions from it.

    Only a name found both in the listing and in our folder is read: the request never becomes a
    path.
    """
    view = kernel_listing(kernel, build)
    path = {
        header.relative_to(HEADER_ROOT).as_posix(): header for header in HEADER_ROOT.rglob("*.h")
    }.get(file)
    if file not in view.headers or path is None:
        raise FileNotFoundError(file)
    content = path.read_bytes()
    recorded = view.headers[file]
    included = [
        (line.header_line, at) for at, line in enumerate(view.lines, 1) if line.header == file
    ]
    return HeaderPage(
        *(kernel, build, Build.objects.values_list("target", flat=True).get(pk=build), file),
        text=content.decode(),
        is_same=hashlib.md5(content, usedforsecurity=False).hexdigest() == recorded
        if recorded
        else None,
        counts=dict(Counter(line for line, _ in included)),  # asdict cannot copy a Counter
        first=dict(reversed(included)),
    )
