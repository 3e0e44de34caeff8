"""Every contender of a shape built, by a process that sees no GPU."""

from __future__ import annotations

import time
from pathlib import Path

from scheduler.build.cache import CodeCache
from scheduler.errors import UserError
from tests.benchmarks.cycles.shapes import read
from tests.benchmarks.gpu.building import Built
from tests.benchmarks.gpu.defaults.contenders import contenders
from tests.benchmarks.gpu.making import Shop, made


def build(place: str, target: str, cache: Path, *, shapes: Path, most: int) -> Built:
    """The kernels of the shape at that place in the file."""
    started, errors = time.monotonic(), []
    shape, shop = read(shapes)[int(place)], Shop(target, CodeCache(cache))
    plan = shape.plan()
    for one in contenders(plan, shop, most):
        try:
            made(plan, shop, one.choose)
        except UserError as error:
            errors.append((f"{one.language} {one.title}", str(error)))
    return Built(shape.title, time.monotonic() - started, tuple(errors))
