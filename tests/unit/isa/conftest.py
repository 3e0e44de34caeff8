"""Listings from the real compiler."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.flags import Flags
from scheduler.build.model import Build, Toolchain
from scheduler.targets import generations

ListingOf = Callable[..., str]
GPUS = [gpu.name for gpu in generations.AMD_TARGETS]


@pytest.fixture(scope="session")
def listing_of(cache: CodeCache, toolchain: Toolchain) -> ListingOf:
    """``listing_of(source, symbol, target, flags=Flags())``: the text of kernel.s."""

    def make(source: str, symbol: str, target: str, flags: Flags | None = None) -> str:
        result = build(source, symbol, targets.find(target), toolchain, cache, flags or Flags())
        assert isinstance(result, Build), f"{result.reason}\n{result.detail}"
        return (result.directory / "kernel.s").read_text()

    return make
