"""Builds side by side: figures and times of all, and the texts of one next to the first's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, groupby, zip_longest

from codegen_app.kernels.modelled.comparison import ModelledComparison, compare_modelled
from codegen_app.kernels.models import Build, KernelUse
from codegen_app.kernels.models.build import WITH_FIGURES
from codegen_app.kernels.pages.compare.choices import (
    Choice,
    choices_for,
    compare_url,
)
from codegen_app.kernels.pages.compare.explanation import explain
from codegen_app.kernels.pages.compare.figures import figure_groups
from codegen_app.kernels.pages.compare.listings import (
    MAX_LISTING_BYTES,
    Listing,
    pair_functions,
    read_listings,
)
from codegen_app.kernels.pages.compare.sides import Side, full_label, make_sides, shared_facts
from codegen_app.kernels.pages.compare.verdict import (
    ComparisonResult,
    TimeComparison,
    add_modelled,
    comparable_times,
    verdicts,
)
from codegen_app.kernels.queries.compared_figures import FigureGroup, FigureRow
from codegen_app.tuning.models import BenchmarkResult
from scheduler import targets
from scheduler.isa.diff import Change, common_runs, count_changes, diff
from scheduler.isa.listing import Function

CONTEXT_LINES = 3  # equal lines shown around each change
MAX_SOURCE_LINES = 20_000  # larger ones take too long to compare in a request
MAX_SIDES = 8  # as many as fit side by side


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
class FunctionDiff:
    """Two device functions, normalised for registers, labels and addresses. ``is_line_by_line``:
    both use one instruction set; otherwise there are no ``rows``."""

    left: str
    right: str
    is_line_by_line: bool
    counts: Mapping[str, int]
    rows: tuple[DiffRow, ...]


@dataclass(frozen=True)
class ComparePage:
    """Two or more builds. ``shown`` is the side whose texts are shown beside the first one's.

    ``verdicts`` cover each side but the first, ``shared`` are the facts that all sides share,
    ``choices`` are further sides. ``unpaired`` names functions that only one of the two shown has,
    ``too_large`` the parts that are too large to compare here. Functions of the runtime, which are
    not in the source, are left out.
    """

    sides: tuple[Side, ...]
    shared: Mapping[str, str]
    verdicts: tuple[TimeComparison, ...]
    shown: int
    groups: tuple[FigureGroup, ...]
    modelled_groups: tuple[FigureGroup, ...]
    same_source: bool
    same_language: bool
    source: tuple[DiffRow, ...]
    functions: tuple[FunctionDiff, ...]
    unpaired: tuple[str, ...]
    missing: tuple[str, ...]
    choices: tuple[Choice, ...]
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

    @property
    def url(self) -> str:
        """The address of this comparison."""
        return compare_url(side.build for side in self.sides)

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """Each side's time over the first's; None for the first, and if they are not comparable."""
        return (None, *(row.ratio for row in self.verdicts))

    @property
    def shared_text(self) -> str:
        """The shared facts in one line."""
        return ", ".join(filter(None, self.shared.values()))

    @property
    def origins(self) -> tuple[str, ...]:
        """Where times were recorded, each once."""
        return tuple(dict.fromkeys(side.origin for side in self.sides if side.origin))

    @property
    def has_parameters(self) -> bool:
        """Whether parameters differ that the sides' labels do not name."""
        return any(
            f"{name}={value}" not in side.label.split(" ")
            for side in self.sides
            for name, value in side.changed.items()
        )

    @property
    def equal_figures(self) -> tuple[FigureRow, ...]:
        """The figures that do not differ."""
        groups = (*self.groups, *self.modelled_groups)
        return tuple(row for group in groups for row in group.equal)

    @property
    def columns(self) -> int:
        """The columns of the table of figures: a name, each side, and all ratios but the first."""
        return 2 * len(self.sides)


def compare_page(builds: Sequence[int], shown: int = 1) -> ComparePage:
    """Return builds by number in that order (8 queries, and one per modelled side). Raises
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
    listings = read_listings(rows, shown)
    left_listing, right_listing = listings[0], listings[shown]
    large_listings = any(
        row.listing is not None and row.listing.size_bytes > MAX_LISTING_BYTES for row in pair
    )
    large_sources = any(row.kernel.source.count("\n") > MAX_SOURCE_LINES for row in pair)
    same_source = left.kernel_id == right.kernel_id
    same_language = left.kernel.source_file == right.kernel.source_file
    is_shown = same_language and not same_source and not large_sources
    pairs = pair_functions(pair, (left_listing, right_listing))
    times = comparable_times(rows)
    sides = make_sides(rows, times)
    modelled = compare_modelled(builds)
    built, estimated = figure_groups(rows, listings), _modelled_groups(rows, modelled)
    groups = (*built, *estimated)
    return ComparePage(
        sides=sides,
        shared=shared_facts(sides),
        verdicts=tuple(
            replace(row, why=explain(groups, place, row))
            for place, row in enumerate(_time_comparisons(rows, sides, times, modelled), 1)
        ),
        shown=shown,
        groups=built,
        modelled_groups=estimated,
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
            full_label(build)
            for build, listing in zip(pair, (left_listing, right_listing), strict=True)
            if listing is None and not large_listings
        ),
        choices=choices_for(left, builds) if len(builds) < MAX_SIDES else (),
        too_large=tuple(compress((_LISTINGS, _SOURCES), (large_listings, large_sources))),
        modelled=modelled,
    )


def _time_comparisons(
    builds: Sequence[Build],
    sides: Sequence[Side],
    times: Mapping[int, BenchmarkResult],
    modelled: ModelledComparison | None,
) -> Iterator[TimeComparison]:
    """Yield the comparison of each side but the first with the first (1 query): of measured times,
    else of modelled ones, if both kernels compute one problem."""
    labels = [side.label for side in sides]
    problems: dict[int, set[int]] = {}
    uses = KernelUse.objects.filter(kernel__in={build.kernel_id for build in builds})
    for kernel, problem in uses.values_list("kernel", "template_node__problem").distinct():
        problems.setdefault(kernel, set()).add(problem)
    for place, row in enumerate(verdicts(builds, labels, times), 1):
        kernels = builds[0].kernel_id, builds[place].kernel_id
        is_one_problem = kernels[0] == kernels[1] or bool(
            problems.get(kernels[0], set()) & problems.get(kernels[1], set())
        )
        pair = modelled.on_one_board(place) if modelled and is_one_problem else None
        is_unmeasured = row.outcome is ComparisonResult.UNMEASURED
        yield (
            add_modelled(row, (labels[0], labels[place]), pair) if pair and is_unmeasured else row
        )


def _modelled_groups(
    builds: Sequence[Build], modelled: ModelledComparison | None
) -> tuple[FigureGroup, ...]:
    """Return the modelled figures; between targets without cycles, which are not comparable."""
    if modelled is None:
        return ()
    is_one_target = len({build.target for build in builds}) == 1
    return tuple(
        replace(
            group, rows=tuple(row for row in group.rows if is_one_target or row.unit != "cycles")
        )
        for group in modelled.groups
        if group.rows
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
    rows = Build.objects.filter(WITH_FIGURES, kernel__name__in=kernels).order_by("created_at")
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
    functions: tuple[Function, Function], listings: tuple[Listing, Listing]
) -> FunctionDiff:
    left, right = functions
    is_line_by_line = listings[0].has_instructions_of(listings[1])
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
    return FunctionDiff(
        left=left.name,
        right=right.name,
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
