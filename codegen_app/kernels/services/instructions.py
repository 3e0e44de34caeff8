"""Counting the instructions of listings, for searches: some builds per round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from django.db import transaction

from codegen_app.kernels.models import Build, InstructionUse, Mnemonic
from codegen_app.platform import artifacts
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.isa.reader import reader_of

BATCH_SIZE = 20  # listings per round: a large one takes some tenths of a second
_MAX_NAME = 100


def count_some(at_most: int = BATCH_SIZE) -> int:
    """Count the instructions of the newest builds without a count; return how many builds."""
    rows = Build.objects.filter(state=State.DONE, listing__isnull=False, instructions=None)
    found = list(rows.select_related("listing").defer("log").order_by("-pk")[:at_most])
    for build in found:
        record(build)
    return len(found)


def record(build: Build) -> None:
    """Count the instructions of a build's listing, once; 0 if the storage lost the listing."""
    counts = _counts(build)
    with transaction.atomic():
        waiting = Build.objects.filter(pk=build.pk, instructions=None)
        if not waiting.update(instructions=counts.total()):
            return  # another worker has counted them
        keys = _keys(counts)
        InstructionUse.objects.bulk_create(
            InstructionUse(mnemonic_id=keys[name], build=build, count=count)
            for name, count in counts.items()
        )


def _counts(build: Build) -> Counter[str]:
    assert build.listing is not None, "builds with a listing are counted"
    try:
        text = artifacts.read(build.listing).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return Counter()
    listing = reader_of(targets.find(build.target)).parse(text)
    return Counter(
        instruction.mnemonic[:_MAX_NAME]
        for function in listing.functions
        for instruction in function.instructions
        if instruction.mnemonic
    )


def _keys(names: Iterable[str]) -> dict[str, int]:
    """Return the rows of these mnemonics, creating new ones; in one order, so that two workers that
    create the same rows do not deadlock."""
    ordered = sorted(names)
    known = dict(Mnemonic.objects.filter(name__in=ordered).values_list("name", "pk"))
    new = [Mnemonic(name=name) for name in ordered if name not in known]
    if new:
        Mnemonic.objects.bulk_create(new, ignore_conflicts=True)
        known = dict(Mnemonic.objects.filter(name__in=ordered).values_list("name", "pk"))
    return known
