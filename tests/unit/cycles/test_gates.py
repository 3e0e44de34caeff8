"""What the model says of the default kernels of each family does not get worse.

The figures are modelled: a gate says that the text of kernels, or the model, changed what a family
reaches, not how fast a GPU is. ``gates.json`` has those recorded last; what is better by more than
the margin is raised by ``python -m tests.benchmarks.cycles gates``, which also says all of them.
What is worse passes where a commit since then says ``Accepts: TARGET: FAMILY``.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from scheduler.cycles.constants import machine
from tests.support.accepted import accepted
from tests.support.families import Figures, figures, modelled
from tests.support.modelled_gates import (
    COMMAND,
    FILE,
    GATES,
    MARGIN,
    Gate,
    better,
    held,
    missed,
    read,
    worse,
)

#: What no launch can be faster than, however its blocks overlap (names of the report's limits).
HARD = ("matrix pipes", "LDS", "vector pipes", "address units and L1", "memory")
ROUNDING = 1e-6


@pytest.mark.long
@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.title)
def test_a_family_is_no_worse_than_it_was(
    gate: Gate, cache: CodeCache, toolchain: Toolchain
) -> None:
    target = targets.find(gate.target)
    kernels = modelled(gate.family.plan(), target, toolchain, cache)
    made = [one.report for one in kernels]
    assert [report.unknown for report in made] == [{}] * len(made)
    for launch in (launch for report in made for launch in report.launches):
        least = [(limit.name, limit.time_us.mid) for limit in launch.limits if limit.name in HARD]
        assert max(time for _, time in least) <= launch.time_us.mid * (1 + ROUNDING), least
    of_family = figures(gate.family, target, kernels)
    assert missed(gate, of_family) == ()
    found = held(gate.family, of_family)
    ratchet = read()[gate.target][gate.family.name]
    sentence = max(made, key=lambda report: report.time_us.mid).sentence
    if gate.title not in accepted(FILE):
        assert not list(worse(found, ratchet)), f"{gate.title} is now {sentence}"
    if raised := list(better(found, ratchet)):
        warnings.warn(
            f"{gate.title} is better: {'; '.join(raised)}: {COMMAND} --raise", stacklevel=1
        )


def test_every_gate_has_its_ratchet_and_none_is_left_over() -> None:
    there = {(target, family) for target, families in read().items() for family in families}
    assert there == {(gate.target, gate.family.name) for gate in GATES}


def test_no_family_is_above_what_its_board_can_do() -> None:
    """Of matrix operations the peak, of bytes what memory gives at best: the buffers are larger
    than what a Radeon's last cache holds, and nothing of them is in any cache at the start."""
    for gate in GATES:
        known = machine(targets.find(gate.target))
        most = 1.0 if gate.family.matrix else known.memory_share.fast
        assert 0 < read()[gate.target][gate.family.name]["of_peak"] <= most, gate.title


def test_worse_and_better_are_told_apart_by_the_margin() -> None:
    ratchet = {"of_peak": 0.5, "conflict": 1.25, "matrix_busy": 0.0, "spills": 0, "narrow": 0.0}
    same = ratchet | {"of_peak": 0.5 * (1 - MARGIN / 2), "narrow": MARGIN / 2}
    assert list(worse(same, ratchet)) == list(better(same, ratchet)) == []
    slow = ratchet | {"of_peak": 0.4, "conflict": 2.0, "spills": 1, "narrow": 0.5}
    assert list(worse(slow, ratchet)) == [
        "of_peak: 0.4, 0.5 before (20% worse)",
        "conflict: 2, 1.25 before (60% worse)",
        "spills: 1, 0 before (100% worse)",
        "narrow: 0.5, 0 before (50% worse)",
    ]
    fast = ratchet | {"of_peak": 0.6, "conflict": 1.0}
    assert len(list(better(fast, ratchet))) == 2
    assert list(worse(fast, ratchet)) == []


def test_no_ratchet_allows_what_no_kernel_may() -> None:
    many, few = (
        next(gate for gate in GATES if gate.family.few_results is few) for few in (False, True)
    )
    good = Figures(10.0, 0.5, 1.05, 0.0, 0, 0.02)
    assert missed(many, good) == ()
    bad = replace(good, conflict=1.06, spills=2, narrow=0.5)
    assert missed(many, bad) == (
        "LDS conflicts x1.06, x1.05 allowed",
        "2 registers spilled",
        "50% of stored bytes by fewer than 8 at once",
    )
    assert len(missed(few, bad)) == 2
