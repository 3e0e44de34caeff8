"""Builds side by side: resources and times of all, and the texts of one beside the first's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress, groupby, zip_longest
from typing import Any

from codegen_app.kernels.modelled.comparison import ModelledComparison, compare_modelled
from codegen_app.kernels.models import Build
from codegen_app.kernels.pages.compare.profile import ProfileRow, profile_rows
from codegen_app.kernels.pages.compare.verdict import TimeComparison, comparable_times, verdicts
from codegen_app.platform import files
from codegen_app.tuning.queries.measured_row import MeasuredRow, metrics_of
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.codegen.languages import language_of
from scheduler.isa.diff import Change, common_runs, count_changes, diff
from scheduler.isa.instructions import kind_titles
from scheduler.isa.listing import Function, count_kinds
from scheduler.isa.occupancy import rules_of
from scheduler.isa.reader import ListingReader, reader_of
from scheduler.targets import Target
from scheduler.targets.terms import GENERAL

CONTEXT_LINES = 3  # equal lines shown around each change
# Listings in bytes, sources in lines: larger ones take too long to compare in a request.
MAX_LISTING_BYTES, MAX_SOURCE_LINES = 4 << 20, 20_000
MAX_SIDES = 8  # as many as fit side by side


@dataclass(frozen=True)
class Side(MeasuredRow):
    """One build with its compared time. ``label`` identifies it by what differs; ``device`` and
    ``bindings`` say where its time was measured: sides may differ in these too."""

    build: int
    label: str
    kernel: str
    url: str
    target: str
    flags: tuple[str, ...]
    toolchain: str
    config: Mapping[str, Any]
    device: str
    bindings: Mapping[str, int]


@dataclass(frozen=True)
class DiffRow:
    """One row; ``change`` is same, renamed, changed, removed, added, or gap (``count`` equal rows).

    Line numbers are 1-based, 0 if a side has no line.
    """

    change: str
    left: int = 0
    left_text: str = ""
    right: int = 0
    right_text: str = ""
    count: int = 0


@dataclass(frozen=True)
class ClassRow:
    """Instructions of a class on both sides, in total and in the inner loop; None if a side has no
    loop."""

    kind: str
    title: str
    whole: tuple[Figure, ...]
    inner: tuple[Figure, ...]


@dataclass(frozen=True)
class FunctionDiff:
    """Two device functions, normalised for registers, labels and addresses. ``is_line_by_line``:
    both use one instruction set; otherwise their instructions are only counted."""

    left: str
    right: str
    classes: tuple[ClassRow, ...]
    is_line_by_line: bool
    counts: Mapping[str, int]
    rows: tuple[DiffRow, ...]


@dataclass(frozen=True)
class Figure:
    """A figure of one side and its difference from the first side's; None if missing."""

    value: int | None
    delta: int | None


@dataclass(frozen=True)
class ResourceRow:
    """One figure for every side."""

    name: str
    figures: tuple[Figure, ...]

    @property
    def differs(self) -> bool:
        """Whether any side's value differs from the first's."""
        return any(figure.delta != 0 for figure in self.figures)

    @property
    def is_blank(self) -> bool:
        """Whether all sides are zero or missing."""
        return not any(figure.value for figure in self.figures)


@dataclass(frozen=True)
class ComparePage:
    """Two or more builds. ``shown`` is the side whose texts are shown beside the first one's.

    ``verdicts`` cover each side but the first, ``profile`` the two whose texts are shown.
    ``unpaired`` names functions that only one of these two has, ``too_large`` the parts that are
    too large to compare here. Functions of the runtime, which are not in the source, are left out.
    """

    sides: tuple[Side, ...]
    verdicts: tuple[TimeComparison, ...]
    profile: tuple[ProfileRow, ...]
    shown: int
    resources: tuple[ResourceRow, ...]
    same_source: bool
    same_language: bool
    source: tuple[DiffRow, ...]
    functions: tuple[FunctionDiff, ...]
    unpaired: tuple[str, ...]
    missing: tuple[str, ...]
    too_large: tuple[str, ...] = ()
    modelled: ModelledComparison | None = None

    @property
    def emulated(self) -> bool:
        """Whether any of the times comes from the CPU emulation."""
        return any(side.emulated for side in self.sides)

    @property
    def left(self) -> Side:
        """The side that the others are compared with."""
        return self.sides[0]

    @property
    def right(self) -> Side:
        """The side whose texts are shown."""
        return self.sides[self.shown]


def compare_page(builds: Sequence[int], shown: int = 1) -> ComparePage:
    """Return builds by number in that order (3 queries, and one per modelled side). Raises
    ``Build.DoesNotExist``.

    ``shown`` is the position of the build whose texts are shown; the second if out of range.
    """
    by_number = Build.objects.select_related("kernel", "listing").in_bulk(builds)
    missing = [number for number in builds if number not in by_number]
    if missing:
        raise Build.DoesNotExist(f"there is no build {missing[0]}")
    rows = [by_number[number] for number in builds]
    shown = shown if 0 < shown < len(rows) else 1
    pair = left, right = rows[0], rows[shown]
    large_listings = any(
        row.listing is not None and row.listing.size_bytes > MAX_LISTING_BYTES for row in pair
    )
    large_sources = any(row.kernel.source.count("\n") > MAX_SOURCE_LINES for row in pair)
    left_listing, right_listing = listings = (
        (None, None) if large_listings else (_listing(left), _listing(right))
    )
    same_source = left.kernel_id == right.kernel_id
    same_language = left.kernel.source_file == right.kernel.source_file
    is_shown = same_language and not same_source and not large_sources
    pairs = _pair_functions(pair, listings)
    times = comparable_times(rows)
    # Each side is labelled by what differs: the compiler if nothing else does, the target if
    # nothing differs.
    differing = [part for part in _LABELS if len({_LABELS[part](build) for build in rows}) > 1]
    shorter = [part for part in differing if part != "toolchain"]
    if len({_label(build, shorter) for build in rows}) == len(rows):
        differing = shorter
    labels = [_label(build, differing or ["target"]) for build in rows]
    sides = []
    for row, label in zip(rows, labels, strict=True):
        result = times.get(row.pk)
        sides.append(
            Side(
                build=row.pk,
                label=label,
                kernel=row.kernel.name,
                url=f"{row.kernel.get_absolute_url()}?build={row.pk}",
                target=row.target,
                flags=tuple(row.flags),
                toolchain=f"{row.toolchain} {row.toolchain_version}",
                config=row.kernel.config,
                metrics=metrics_of(result),
                emulated=bool(result and result.emulated),
                origin=result.origin if result else "",
                device=result.environment.device_name if result else "",
                bindings=result.bindings if result else {},
            )
        )
    return ComparePage(
        sides=tuple(sides),
        verdicts=verdicts(rows, labels, times),
        profile=profile_rows(
            pair, [(each.reader, each.main) if each and each.main else None for each in listings]
        ),
        shown=shown,
        resources=_resources(rows),
        same_source=same_source,
        same_language=same_language,
        source=tuple(_source_rows(left.kernel.source, right.kernel.source)) if is_shown else (),
        functions=tuple(
            _function_diff((a, b), (left_listing, right_listing))
            for a, b in pairs
            if a and b and left_listing and right_listing
        ),
        unpaired=tuple(
            function.name for each in pairs if None in each for function in each if function
        ),
        missing=tuple(
            _label(build, _ALL_PARTS)
            for build, listing in zip(pair, listings, strict=True)
            if listing is None and not large_listings
        ),
        too_large=tuple(compress((_LISTINGS, _SOURCES), (large_listings, large_sources))),
        modelled=compare_modelled(builds),
    )


_LISTINGS = (
    f"A listing exceeds the {MAX_LISTING_BYTES >> 20} MiB limit of this page: download both from"
    " their kernels' pages."
)
_SOURCES = (
    f"A source exceeds the limit of {MAX_SOURCE_LINES} lines of this page: download both from"
    " their kernels' pages."
)


def builds_of_kernels(kernels: Sequence[str], target: str = "") -> list[int]:
    """Return a build of each kernel in that order (1 query), all for one target: the requested one,
    or the first that all of them are built for. Raises ``Build.DoesNotExist`` if there is none."""
    rows = Build.objects.filter(kernel__name__in=kernels, state=State.DONE).order_by("created_at")
    by_target: dict[str, dict[str, int]] = {}
    for name, built_for, pk in rows.values_list("kernel__name", "target", "pk"):
        by_target.setdefault(built_for, {})[name] = pk
    ranked = sorted(by_target, key=lambda name: (bool(targets.find(name).emulates), name))
    for built_for in [target] if target else ranked:
        if all(name in by_target.get(built_for, {}) for name in kernels):
            return [by_target[built_for][name] for name in kernels]
    raise Build.DoesNotExist(
        f"these kernels are not all built for {target or 'one target'}: build them first"
    )


_LABELS: Mapping[str, Callable[[Build], str]] = {
    "language": lambda build: language_of(build.kernel.source_file),
    "kernel": lambda build: build.kernel.name.rpartition("_")[2],  # eight digits of its digest
    "target": lambda build: build.target,
    "flags": lambda build: " ".join(build.flags),
    "toolchain": lambda build: f"{build.toolchain} {build.toolchain_version}",
}
_ALL_PARTS = ("kernel", "target", "flags")


def _label(build: Build, parts: Sequence[str]) -> str:
    return " ".join(_LABELS[part](build) for part in parts)


@dataclass(frozen=True)
class _Listing:
    """A build's listing; ``main`` is the function whose resources are compared."""

    target: Target
    reader: ListingReader
    dialect: str
    functions: tuple[Function, ...]
    main: Function | None


def _listing(build: Build) -> _Listing | None:
    """Return a build's listing; None if there is none or its file is missing."""
    if build.listing is None:
        return None
    with suppress(FileNotFoundError):
        text = files.read(build.listing.path, build.listing.digest).decode(errors="replace")
        target = targets.find(build.target)
        reader = reader_of(target)
        functions = reader.parse(text).functions
        # The runtime's functions (assertions, prints) belong to no line of the source.
        of_source = [row for row in functions if any(line.source_line for line in row.instructions)]
        compared = tuple(of_source or functions)
        # The longest if the listing names the function with the most registers differently.
        resources = _largest_function(build)
        largest = [row for row in compared if build.resources.get(row.name) == resources]
        main = max(largest or compared, key=lambda row: len(row.instructions), default=None)
        return _Listing(target, reader, reader.dialect_of(text), compared, main)
    return None


def _pair_functions(
    builds: Sequence[Build], listings: Sequence[_Listing | None]
) -> list[tuple[Function | None, Function | None]]:
    """Pair functions of the same name, ignoring the kernel's own name in it; a single pair always
    matches."""
    left, right = (listing.functions if listing else () for listing in listings)
    if len(left) == len(right) == 1:
        return [(left[0], right[0])]
    by_name, others = (
        {function.name.replace(build.kernel.name, ""): function for function in functions}
        for build, functions in zip(builds, (left, right), strict=True)
    )
    return [(by_name.get(name), others.get(name)) for name in {**by_name, **others}]


def _resources(builds: Sequence[Build]) -> tuple[ResourceRow, ...]:
    """Return the figures of the device function with the most registers on each side; for different
    vendors only the figures that all have."""
    vendor_rules = [rules_of(targets.find(build.target)) for build in builds]
    figures = [_largest_function(build) for build in builds]
    if len(set(vendor_rules) - {None}) > 1:
        figures = [
            rules.comparable(figure, targets.find(build.target)) if rules and figure else {}
            for rules, figure, build in zip(vendor_rules, figures, builds, strict=True)
        ]
        names = dict.fromkeys(name for figure in figures for name in figure)
    else:
        names = dict.fromkeys(name for rules in vendor_rules if rules for name in rules.numbers)
    return tuple(
        ResourceRow(name, _figures([figure.get(name) for figure in figures])) for name in names
    )


def _figures(values: Sequence[int | None]) -> tuple[Figure, ...]:
    first = values[0]
    return tuple(
        Figure(value, None if value is None or first is None else value - first) for value in values
    )


def _largest_function(build: Build) -> Mapping[str, int]:
    rules = rules_of(targets.find(build.target))
    functions: list[Mapping[str, int]] = list(build.resources.values())
    return max(functions, key=rules.registers, default={}) if rules else {}


def _source_rows(left: str, right: str) -> Iterator[DiffRow]:
    old, new = left.split("\n"), right.split("\n")
    old_lines, new_lines = list(enumerate(old, 1)), list(enumerate(new, 1))
    rows: list[DiffRow] = []
    at_old = at_new = 0
    for same_old, same_new, length in [*common_runs(old, new), (len(old), len(new), 0)]:
        for a, b in zip_longest(
            old_lines[at_old:same_old], new_lines[at_new:same_new], fillvalue=_NO_LINE
        ):
            change = Change.CHANGED
            if _NO_LINE in (a, b):
                change = Change.ADDED if a == _NO_LINE else Change.REMOVED
            rows.append(DiffRow(change, *a, *b))
        at_old, at_new = same_old + length, same_new + length
        rows += [
            DiffRow(Change.SAME, *a, *b)
            for a, b in zip(old_lines[same_old:at_old], new_lines[same_new:at_new], strict=True)
        ]
    return _fold_equal_rows(rows)


_NO_LINE = (0, "")


def _function_diff(
    functions: tuple[Function, Function], listings: tuple[_Listing, _Listing]
) -> FunctionDiff:
    left, right = functions
    left_target, right_target = (listing.target for listing in listings)
    # Generations name instructions differently, so a text comparison is meaningless between them.
    is_line_by_line = (
        listings[0].dialect == listings[1].dialect and left_target.family == right_target.family
    )
    readers = listings[0].reader, listings[1].reader
    rows = diff(left, right, readers) if is_line_by_line else ()

    def line(function: Function, index: int | None) -> tuple[int, str]:
        if index is None:
            return _NO_LINE
        instruction = function.instructions[index]
        return instruction.line, f"{instruction.mnemonic} {instruction.operands}"

    diff_rows = [
        DiffRow(row.change.value, *line(left, row.left), *line(right, row.right)) for row in rows
    ]
    whole = [count_kinds(function.instructions) for function in functions]
    inner = [
        None if loop is None else count_kinds(function.loop_instructions(loop))
        for function in functions
        for loop in (function.inner_loop(),)
    ]
    words = left_target.words if left_target.words == right_target.words else GENERAL
    return FunctionDiff(
        left=left.name,
        right=right.name,
        classes=tuple(
            ClassRow(
                kind.value,
                title,
                _figures([counts.get(kind, 0) for counts in whole]),
                _figures([None if counts is None else counts.get(kind, 0) for counts in inner]),
            )
            for kind, title in kind_titles(words).items()
            if any(kind in counts for counts in whole)
        ),
        is_line_by_line=is_line_by_line,
        counts={change.value: count for change, count in count_changes(rows).items()},
        rows=tuple(_fold_equal_rows(diff_rows)),
    )


def _fold_equal_rows(rows: Sequence[DiffRow]) -> Iterator[DiffRow]:
    """Yield changes with a few equal rows around them, and gaps for the other equal rows."""
    equal = (Change.SAME, Change.RENAMED)
    # An empty line that one side does not have shows nothing.
    visible = [
        row
        for row in rows
        if row.change in equal or row.left_text.strip() or row.right_text.strip()
    ]
    near: set[int] = set()
    for at, row in enumerate(visible):
        if row.change not in equal:
            near.update(range(at - CONTEXT_LINES, at + CONTEXT_LINES + 1))
    for is_near, group in groupby(enumerate(visible), lambda pair: pair[0] in near):
        neighbours = [row for _, row in group]
        yield from neighbours if is_near else [DiffRow("gap", count=len(neighbours))]
