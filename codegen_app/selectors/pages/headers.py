"""A header that a build's instructions were inlined from: its text, and what came of its lines."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from codegen_app.models import Build
from codegen_app.selectors.pages.kernel import kernel_listing
from scheduler.build.sandbox_paths import HEADERS


@dataclass(frozen=True)
class HeaderPage:
    """A header as this Kiln has it. ``is_same`` says whether the build was made with that very
    text, None where the compiler wrote no digest of it. ``counts`` has the instructions of the
    build that came from each line, ``first`` the listing's first line among them."""

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
        """How many instructions of the build came from it."""
        return sum(self.counts.values())


def header_page(kernel: str, build: int, file: str) -> HeaderPage:
    """A header of ours (2 queries); raises ``Build.DoesNotExist``, and ``FileNotFoundError`` for
    one that the build has nothing from.

    Only a name that the listing has and our folder has is read: no path is made of what was asked.
    """
    view = kernel_listing(kernel, build)
    path = {one.relative_to(HEADERS).as_posix(): one for one in HEADERS.rglob("*.h")}.get(file)
    if file not in view.headers or path is None:
        raise FileNotFoundError(file)
    content = path.read_bytes()
    recorded = view.headers[file]
    own = [(line.header_line, at) for at, line in enumerate(view.lines, 1) if line.header == file]
    return HeaderPage(
        *(kernel, build, Build.objects.values_list("target", flat=True).get(pk=build), file),
        text=content.decode(),
        is_same=hashlib.md5(content, usedforsecurity=False).hexdigest() == recorded
        if recorded
        else None,
        counts=dict(Counter(line for line, _ in own)),  # asdict cannot copy a Counter
        first=dict(reversed(own)),
    )
