"""Counting the instructions of listings, for searches: some builds per round."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

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
    builds = list(rows.select_related("listing").defer("log").order_by("-pk")[:at_most])
    for build in builds:
        record(build)
    return len(builds)


def record(build: Build) -> None:
    """Count the instructions of a build's listing, once; 0 if the storage lost the listing."""
    assert build.listing is not None, "builds with a listing are counted"
    counts: Counter[str] = Counter()
    with suppress(FileNotFoundError):
        text = artifacts.read(build.listing).decode("utf-8", errors="replace")
        for function in reader_of(targets.find(build.target)).parse(text).functions:
            names = (instruction.mnemonic[:_MAX_NAME] for instruction in function.instructions)
            counts.update(filter(None, names))
    with transaction.atomic():
        waiting = Build.objects.filter(pk=build.pk, instructions=None)
        if not waiting.update(instructions=counts.total()):
            return  # another worker has counted them
        # In one order, so that two workers that create the same rows do not deadlock.
        mnemonics = Mnemonic.objects.filter(name__in=list(counts))
        new = sorted(counts.keys() - set(mnemonics.values_list("name", flat=True)))
        Mnemonic.objects.bulk_create((Mnemonic(name=name) for name in new), ignore_conflicts=True)
        keys = dict(mnemonics.values_list("name", "pk"))
        InstructionUse.objects.bulk_create(
            InstructionUse(mnemonic_id=keys[name], build=build, count=count)
            for name, count in counts.items()
        )
