"""Waves run from their begin to their end, and leave what their instructions say."""

from __future__ import annotations

import numpy as np

from tests.unit.isa.emulator.kernels import LOAD, OUT, STORE, execute


def test_each_lane_adds_its_thread_to_its_word_and_stores_it() -> None:
    data = np.arange(64, dtype=np.uint32) * 7
    done = execute(f"{LOAD}\nv_add_u32_e32 v3, v2, v0\n{STORE}", data)
    assert done.words(64).tolist() == [thread * 8 for thread in range(64)]
    (trace,) = done.run.traces
    assert trace.executed.tolist() == list(range(9))
    assert set(trace.active.tolist()) == {64}
    assert sorted(trace.accesses) == [0, 1, 4, 7]
    store = trace.accesses[7]
    assert store.addresses.tolist() == [OUT + 4 * thread for thread in range(64)]
    assert (store.bytes, store.lanes.tolist()) == (4, list(range(64)))
    assert not done.run.unknown
    assert not done.run.findings
    assert not trace.cut


def test_an_instruction_that_is_not_known_is_named_and_leaves_zeros() -> None:
    done = execute(f"{LOAD}\nv_mov_b32_e32 v3, 5\nv_frobnicate_b32 v3, v2\n{STORE}", real=False)
    assert done.run.unknown == {"v_frobnicate_b32": 1}
    assert not done.words(64).any()
