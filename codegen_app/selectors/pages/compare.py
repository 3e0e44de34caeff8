"""Two builds side by side: source, instructions, resources and times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from django.core.files.storage import default_storage

from codegen_app.models import BenchmarkResult, Build
from scheduler.isa.diff import Change, diff, summary
from scheduler.isa.listing import Function, Instruction, parse

CONTEXT = 3  # equal lines shown around each change


@dataclass(frozen=True)
class Side:
    """One of the two, named by what it is and not by its number. Times in nanoseconds."""

    build: int
    kernel: str
    url: str
    target: str
    flags: tuple[str, ...]
    toolchain: str
    config: Mapping[str, Any]
    median_ns: float | None
    low_ns: float | None
    high_ns: float | None
    n: int
    emulated: bool
    bindings: Mapping[str, int]


@dataclass(frozen=True)
class DiffRow:
    """One row; ``change`` is same, renamed, changed, removed, added, or gap (``count`` equal rows).

    Line numbers are 1-based, 0 where a side has no line.
    """

    change: str
    left: int = 0
    left_text: str = ""
    right: int = 0
    right_text: str = ""
    count: int = 0


@dataclass(frozen=True)
class FunctionDiff:
    """Two device functions, normalised for registers, labels and addresses."""

    left: str
    right: str
    counts: Mapping[str, int]
    rows: tuple[DiffRow, ...]


@dataclass(frozen=True)
class ResourceDelta:
    """One figure of both sides and the difference, right minus left; None where one lacks it."""

    name: str
    left: int | None
    right: int | None

    @property
    def delta(self) -> int | None:
        """Right minus left."""
        return None if self.left is None or self.right is None else self.right - self.left


@dataclass(frozen=True)
class ComparePage:
    """Two builds."""

    left: Side
    right: Side
    resources: tuple[ResourceDelta, ...]
    source: tuple[DiffRow, ...]
    functions: tuple[FunctionDiff, ...]


def compare_page(left_id: int, right_id: int) -> ComparePage:
    """Two builds (3 queries); raises ``Build.DoesNotExist``."""
    rows = Build.objects.select_related("kernel", "listing").in_bulk([left_id, right_id])
    if left_id not in rows or right_id not in rows:
        raise Build.DoesNotExist(
            f"there is no build {left_id if left_id not in rows else right_id}"
        )
    left, right = rows[left_id], rows[right_id]
    functions = zip(_functions(left), _functions(right), strict=False)
    return ComparePage(
        left=_side(left),
        right=_side(right),
        resources=_resources(left, right),
        source=tuple(_source_rows(left.kernel.source, right.kernel.source)),
        functions=tuple(_function_diff(one, other) for one, other in functions),
    )


def _side(build: Build) -> Side:
    result = BenchmarkResult.objects.filter(build=build).order_by("-created_at", "-pk").first()
    return Side(
        build=build.pk,
        kernel=build.kernel.name,
        url=f"{build.kernel.get_absolute_url()}?build={build.pk}",
        target=build.target,
        flags=tuple(build.flags),
        toolchain=f"{build.toolchain} {build.toolchain_version}",
        config=build.kernel.config,
        median_ns=result.median_ns if result else None,
        low_ns=result.low_ns if result else None,
        high_ns=result.high_ns if result else None,
        n=len(result.samples_ns) if result else 0,
        emulated=bool(result and result.emulated),
        bindings=result.bindings if result else {},
    )


def _functions(build: Build) -> tuple[Function, ...]:
    if build.listing is None:
        return ()
    with default_storage.open(build.listing.path, "rb") as file:
        return parse(file.read().decode("utf-8", errors="replace")).functions


_FIGURES = (
    "occupancy_waves_per_simd",
    "vgpr",
    "agpr",
    "sgpr",
    "lds_bytes",
    "scratch_bytes",
    "vgpr_spills",
    "sgpr_spills",
    "code_bytes",
)


def _resources(left: Build, right: Build) -> tuple[ResourceDelta, ...]:
    """Figures of the device function that takes the most registers on each side."""
    one, other = _heaviest(left), _heaviest(right)
    return tuple(ResourceDelta(name, one.get(name), other.get(name)) for name in _FIGURES)


def _heaviest(build: Build) -> Mapping[str, int]:
    functions: list[Mapping[str, int]] = list(build.resources.values())
    return max(functions, key=lambda resources: resources["vgpr"], default={})


def _source_rows(left: str, right: str) -> Iterator[DiffRow]:
    old, new = left.split("\n"), right.split("\n")
    rows: list[DiffRow] = []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        for step in range(max(i_end - i, j_end - j)):
            one, other = i + step, j + step
            has_left, has_right = one < i_end, other < j_end
            rows.append(
                DiffRow(
                    change=_change(tag, has_left, has_right),
                    left=one + 1 if has_left else 0,
                    left_text=old[one] if has_left else "",
                    right=other + 1 if has_right else 0,
                    right_text=new[other] if has_right else "",
                )
            )
    return _folded(rows)


def _change(tag: str, has_left: bool, has_right: bool) -> str:
    if tag == "equal":
        return Change.SAME
    if has_left and has_right:
        return Change.CHANGED
    return Change.REMOVED if has_left else Change.ADDED


def _function_diff(left: Function, right: Function) -> FunctionDiff:
    found = diff(left, right)
    rows = [
        DiffRow(
            change=row.change.value,
            left=left.instructions[row.left].line if row.left is not None else 0,
            left_text=_text(left.instructions[row.left]) if row.left is not None else "",
            right=right.instructions[row.right].line if row.right is not None else 0,
            right_text=_text(right.instructions[row.right]) if row.right is not None else "",
        )
        for row in found
    ]
    counts = {change.value: count for change, count in summary(found).items()}
    return FunctionDiff(left.name, right.name, counts, tuple(_folded(rows)))


def _text(instruction: Instruction) -> str:
    return f"{instruction.mnemonic} {instruction.operands}"


def _folded(rows: Sequence[DiffRow]) -> Iterator[DiffRow]:
    """Changes with a little of what is equal around them; the rest of that as gaps."""
    equal = (Change.SAME, Change.RENAMED)
    near: set[int] = set()
    for at, row in enumerate(rows):
        if row.change not in equal:
            near.update(range(at - CONTEXT, at + CONTEXT + 1))
    skipped = 0
    for at, row in enumerate(rows):
        if at not in near:
            skipped += 1
            continue
        if skipped:
            yield DiffRow("gap", count=skipped)
            skipped = 0
        yield row
    if skipped:
        yield DiffRow("gap", count=skipped)
