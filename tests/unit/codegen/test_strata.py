"""How many configurations serve each type, layout and target of the loop templates and attention:
pinned, so that a rule that drops every one of them (fault 10) cannot be silent. The counts of
matrix products and convolutions stand in tests/unit/matrix/test_configs.py."""

from __future__ import annotations

import pytest

from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.codegen.scheduling import served_together
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.targets import find
from tests.support.strata import FLOATS, LOOPS

TARGETS = [target.name for target in served_together(find("gfx942"))]


def serving(plan: Schedule, target: str) -> int:
    """Configurations that no rule turns down; each one that is has its reason."""
    backend = ROCmCPPScheduling(plan, (find(target),))
    (only,) = plan.nodes
    found = backend.candidates(only)
    assert all(item.rejected.reason for item in found.rejected)
    assert backend.template(only).reject(backend.template(only).default_config()) is None
    return len(found.callers)


# For f16, bf16, f32, f64.
COUNTS = {
    "pointwise": (12, 12, 9, 6),
    "pointwise, turned": (12, 12, 9, 6),
    "reduction, rows": (26, 26, 21, 15),
    "reduction, columns": (8, 8, 8, 8),
    "reduction, odd rows": (8, 8, 8, 8),
    "reduction, softmax": (44, 44, 36, 26),
    "reduction, layer norm": (44, 44, 36, 26),
    "scan": (8, 8, 8, 8),
    "attention, 32 deep": (6, 6, 5, 3),
    "attention, 64 deep": (6, 6, 3, 1),
}
# 160 KiB of LDS have room for larger tiles.
_LARGE = {"attention, 32 deep": (6, 6, 6, 6), "attention, 64 deep": (6, 6, 6, 5)}
_LARGEST = {"attention, 32 deep": (6, 6, 6, 6), "attention, 64 deep": (6, 6, 6, 6)}
_MIDDLE = {"attention, 32 deep": (6, 6, 6, 5), "attention, 64 deep": (6, 6, 5, 3)}
# As do NVIDIA's 163 and 227, and in part 99.
WITH_MORE = {
    **{"gfx950": _LARGE, "cpu-gfx950": _LARGE, "sm_80": _LARGE, "sm_86": _MIDDLE, "sm_89": _MIDDLE},
    **{"sm_90": _LARGEST, "sm_100": _LARGEST, "sm_120": _MIDDLE},
}


@pytest.mark.parametrize("layout", LOOPS)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.label)
def test_no_stratum_is_empty(dtype: DType, layout: str) -> None:
    counts = {target: serving(LOOPS[layout](dtype), target) for target in TARGETS}
    assert min(counts.values()) > 0
    place = FLOATS.index(dtype)
    due = {
        target: WITH_MORE.get(target, COUNTS).get(layout, COUNTS[layout])[place]
        for target in TARGETS
    }
    assert counts == due
