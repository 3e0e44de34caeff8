"""Running maxima, minima and logarithms of sums on CPU emulation against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler import targets
from scheduler.codegen.rocm.scan.template import ScanTemplate
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import GroupKind, ReductionKind, Scan, Store
from scheduler.ir.values import Accumulator, Load
from tests.support.memory import from_device, to_device
from tests.unit.codegen.loopnest import at, axes, buffer, group, run

TARGETS = tuple(targets.find(n) for n in ("gfx942", "gfx1100"))
KINDS = {
    ReductionKind.MAX: np.maximum,
    ReductionKind.MIN: np.minimum,
    ReductionKind.LOGSUMEXP: np.logaddexp,
}


@pytest.mark.long(but=4)
@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (kind, dtype)
        for kind in KINDS
        for dtype in (DType.F32, DType.F64, DType.I64)
        if dtype.is_float or kind is not ReductionKind.LOGSUMEXP
    ],
)
def test_running_results(kind: ReductionKind, dtype: DType) -> None:
    """With infinities, and a NaN that stays to the end of its row."""
    outer = axes(4)
    (step,) = axes(301, prefix="r")
    index = (*at(outer), step.var)
    buffers = [buffer(name, dtype, (4, 301)) for name in ("x", "y")]
    store = Store("y", index, Accumulator(dtype))
    scan = Scan("op0", outer, step, kind, Load("x", index, dtype), dtype, store, ())
    node, lowered = group(GroupKind.SCAN, [scan], buffers)
    made = ScanTemplate(node, lowered, TARGETS)
    x = np.random.default_rng(3).standard_normal((4, 301)) * 40
    if dtype.is_float:
        x[1, :3], x[2, 7], x[2, 9], x[3, 150] = -np.inf, np.inf, -np.inf, np.nan
    else:
        x[1, :3] = -(2**40)
    x = from_device(to_device(x, dtype), dtype)
    with np.errstate(all="ignore"):
        want = KINDS[kind].accumulate(x, axis=1)
    memory = {"x": to_device(x, dtype).reshape(-1)}
    for lanes in (1, 8, 256):
        for target in ("cpu", "cpu-gfx1100"):
            found = run(made.generate({"lanes": lanes}), memory, target=target)
            got = from_device(found["y"], dtype).reshape(4, 301)
            np.testing.assert_allclose(
                got, want, rtol=1e-5 if dtype is DType.F32 else 1e-13, err_msg=f"{lanes} {target}"
            )
