"""What the page of an instruction says that it costs on a target."""

from __future__ import annotations

import pytest

from scheduler import targets
from scheduler.cycles.instruction_cost import cost_of


@pytest.mark.parametrize(
    ("target", "mnemonic", "counter"),
    [
        ("gfx942", "s_load_dword", "lgkmcnt"),
        ("gfx942", "global_store_dword", "vmcnt"),
        ("gfx1100", "global_store_b32", "vscnt"),
        ("gfx1201", "global_store_b32", "storecnt"),
        ("gfx1201", "s_load_b32", "kmcnt"),
    ],
)
def test_counters_have_the_names_of_the_targets_generation(
    target: str, mnemonic: str, counter: str
) -> None:
    facts = {fact.name: fact.value for fact in cost_of(targets.find(target), mnemonic).facts}
    assert facts["counters"] == counter
