"""Models for worker processes of tests, named as ``tests.support.fake_models:quick``."""

from __future__ import annotations

import time

from scheduler.cycles.report import VERSION, Band, Report
from scheduler.errors import UserError
from scheduler.targets.modelled import board_of_device
from scheduler.tuning.modelled.job import ModelJob


def quick(job: ModelJob, listing: str) -> Report:
    """A microsecond for each line of the listing."""
    mid = float(len(listing.splitlines()))
    return Report(
        version=VERSION,
        kernel=job.request.kernel,
        target=job.request.target,
        board=board_of_device(job.device).name,
        sizes=job.request.bindings,
        time_us=Band(0.9 * mid, mid, 1.1 * mid),
        sentence="bound by lines",
        launches=(),
        unknown={"v_new": 2} if "v_new" in listing else {},
        sampled="all",
    )


def refusing(job: ModelJob, listing: str) -> Report:
    """Can model nothing."""
    raise UserError(f"{job.request.kernel} cannot be modelled: no reason")


def broken(job: ModelJob, listing: str) -> Report:
    """A bug of the model."""
    raise AssertionError(f"unforeseen in {len(listing)} letters")


def slow(job: ModelJob, listing: str) -> Report:
    """Takes longer than any limit of a test."""
    time.sleep(600)
    return quick(job, listing)


def timeless(job: ModelJob, listing: str) -> Report:
    """Says that it takes no time."""
    return quick(job, "")
