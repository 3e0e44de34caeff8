"""The listings of compared builds, and the differences of their functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from codegen_app.kernels.models import Build
from codegen_app.platform import files
from scheduler import targets
from scheduler.isa.listing import Function
from scheduler.isa.occupancy import rules_of
from scheduler.isa.reader import ListingReader, reader_of
from scheduler.targets import Target

MAX_LISTING_BYTES = 4 << 20  # of one listing, and of all that are read for one page


@dataclass(frozen=True)
class Listing:
    """A build's listing; ``main`` is the function whose resources are compared."""

    target: Target
    reader: ListingReader
    dialect: str
    functions: tuple[Function, ...]
    main: Function | None

    def has_instructions_of(self, other: Listing) -> bool:
        """Whether both use one instruction set, so that they can be compared line by line."""
        return self.dialect == other.dialect and self.target.family == other.target.family


def read_listings(builds: Sequence[Build], shown: int) -> list[Listing | None]:
    """Return the listings of all sides; only of the first and the shown one if all are too large
    together, and None for those that are missing or not read."""
    sizes = [build.listing.size_bytes if build.listing else 0 for build in builds]
    pair = {0, shown}
    if any(sizes[place] > MAX_LISTING_BYTES for place in pair):
        return [None] * len(builds)
    read = pair if sum(sizes) > MAX_LISTING_BYTES else set(range(len(builds)))
    return [_read(build) if place in read else None for place, build in enumerate(builds)]


def _read(build: Build) -> Listing | None:
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
        resources = largest_function(build)
        largest = [row for row in compared if build.resources.get(row.name) == resources]
        main = max(largest or compared, key=lambda row: len(row.instructions), default=None)
        return Listing(target, reader, reader.dialect_of(text), compared, main)
    return None


def largest_function(build: Build) -> Mapping[str, int]:
    """Return the resources of the device function with the most registers; empty if unknown."""
    rules = rules_of(targets.find(build.target))
    functions: list[Mapping[str, int]] = list(build.resources.values())
    return max(functions, key=rules.registers, default={}) if rules else {}


def pair_functions(
    builds: Sequence[Build], listings: Sequence[Listing | None]
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
