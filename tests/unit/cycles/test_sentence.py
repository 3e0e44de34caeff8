"""The sentence on top of a report: what it says of launches of each kind."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from scheduler.cycles.report import Band, InstructionFigures, Pipe, ResourceLimit, StallReason
from scheduler.cycles.sentence import MEMORY_LIMIT, TIMES, bottleneck_sentence
from tests.unit.cycles.hand import function_of

FUNCTION = function_of(
    """
    ds_read_b128 v[0:3], v8
    global_load_dword v4, v9, s[0:1]
    global_store_short v9, v4, s[0:1]
    s_endpgm
    """
)


def written(
    pipes: Mapping[Pipe, float],
    waits: Mapping[StallReason, float],
    *,
    memory_us: float = 0.0,
    figures: tuple[InstructionFigures, ...] = (),
    tail: float = 0.0,
    units: tuple[int, int] = (304, 304),
) -> str:
    limit = ResourceLimit(MEMORY_LIMIT, Band(memory_us, memory_us, memory_us))
    return bottleneck_sentence(FUNCTION, 100.0, pipes, waits, (limit,), figures, tail, units)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            written({Pipe.MEMORY: 0.1}, {StallReason.GLOBAL: 0.9}, memory_us=95.0),
            "bound by memory (95% of the time); waves wait for global loads 90% of the time",
        ),
        (
            written(
                {Pipe.LDS: 0.7, Pipe.MATRIX: 0.3},
                {StallReason.GLOBAL: 0.31, StallReason.LDS: 0.2},
                figures=(InstructionFigures(0, 10, 64, 200, 50, {}, conflict=1.67),),
            ),
            f"bound by LDS (70% of the time); 128-bit reads conflict {TIMES}1.67;"
            " waves wait for global loads 31% of the time",
        ),
        (
            written({Pipe.MATRIX: 0.3, Pipe.LDS: 0.2}, {StallReason.BARRIER: 0.05}),
            "issue-bound (95% of a wave's time): matrix instructions busy 30% of the time",
        ),
        (
            written({Pipe.VECTOR: 0.07}, {StallReason.GLOBAL: 0.5}, units=(28, 304)),
            "bound by vector instructions (76% of the time); 28 of 304 compute units have work;"
            " waves wait for global loads 50% of the time",
        ),
        (
            written(
                {Pipe.VECTOR: 0.9},
                {StallReason.PIPE: 0.5},
                tail=0.25,
                figures=(
                    InstructionFigures(
                        1, 4, 64, 16, 0, {}, requests=64, bytes_used=256, bytes_moved=8192
                    ),
                    InstructionFigures(
                        2, 4, 64, 16, 0, {}, requests=2, bytes_used=128, bytes_moved=256
                    ),
                ),
            ),
            "bound by vector instructions (90% of the time); loads use 3% of the bytes they move;"
            " stores use 50% of the bytes they move; pipe contention 50% of the time;"
            " compute units are idle 25% of the time",
        ),
    ],
)
def test_sentences(found: str, expected: str) -> None:
    assert found == expected


def test_a_launch_that_does_nothing_has_one_too() -> None:
    assert written({}, {}).startswith("issue-bound")
