"""Tiles of attention of few queries lie in LDS so that nothing waits for a bank."""

from __future__ import annotations

import pytest

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from tests.support.families import attention, conflict, modelled


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("name", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_tiles_of_32_keys_are_written_and_read_without_conflicts(
    name: str, cache: CodeCache, toolchain: Toolchain
) -> None:
    plan = attention(1, 2, 2048, 128, queries=1)
    made = modelled(plan, targets.find(name), toolchain, cache)
    launches = [launch for one in made for launch in one.report.launches]
    assert {round(conflict(launch), 3) for launch in launches} == {1.0}
    listing = "".join(one.listing for one in made)
    wide = "ds_read_b128" if name.startswith("gfx9") else "ds_load_b128"
    assert wide in listing, "tiles are read 16 bytes at once"
