"""How many configurations serve each type, layout and target of the loop templates and attention:
pinned, so that a rule that drops every one of them (fault 10) cannot be silent. The counts of
matrix products and convolutions stand in tests/unit/matrix/test_configs.py."""

from __future__ import annotations

import pytest

from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.codegen.scheduling import targets_sharing_source
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.targets import find
from tests.support.strata import FLOATS, LOOPS

TARGETS = [target.name for target in targets_sharing_source(find("gfx942"))]


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
    "pointwise, turned": (21, 21, 16, 10),
    "reduction, rows": (26, 26, 21, 15),
    "reduction, columns": (60, 60, 60, 60),
    "reduction, odd rows": (23, 23, 19, 14),
    "reduction, softmax": (44, 44, 36, 26),
    "reduction, layer norm": (44, 44, 36, 26),
    "scan": (26, 26, 21, 15),
    "attention, 32 deep": (16, 16, 15, 13),
    "attention, 64 deep": (16, 16, 13, 6),
}
# Matrix instructions for every type: nothing but keys and values in LDS. 160 KiB have room for
# more.
_CDNA = {"attention, 32 deep": (16, 16, 16, 16), "attention, 64 deep": (16, 16, 16, 10)}
_LARGEST = {"attention, 32 deep": (16, 16, 16, 16), "attention, 64 deep": (16, 16, 16, 16)}
# As have NVIDIA's 227 and 163, and in part 99.
_LARGE = {"attention, 32 deep": (16, 16, 16, 16), "attention, 64 deep": (16, 16, 16, 15)}
_MIDDLE = {"attention, 32 deep": (16, 16, 16, 15), "attention, 64 deep": (16, 16, 15, 13)}
WITH_MORE = {
    **dict.fromkeys(("gfx90a", "cpu-gfx90a", "gfx942", "cpu"), _CDNA),
    **dict.fromkeys(("gfx950", "cpu-gfx950", "sm_90", "sm_100"), _LARGEST),
    **{"sm_80": _LARGE, "sm_86": _MIDDLE, "sm_89": _MIDDLE, "sm_120": _MIDDLE},
}


@pytest.mark.long(but=3)
@pytest.mark.full(but=["f16-pointwise", "f64-attention, 64 deep", "f64-pointwise"])
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
