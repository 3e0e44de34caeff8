"""Small graphs through lowering, fusion, rendering and the compiler, against the reference.

Each is there for what its kernels have to do: an inner dimension that is not the last, rows that
several loops share, windows, tables, parts of other buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, Ref
from scheduler.ir.operations import Lowered
from scheduler.ir.storage import bind_buffer, from_storage, to_storage
from scheduler.lowering import lower
from scheduler.targets import find
from tests.unit.codegen.loopnest import run
from tests.unit.lowering.graphs import GraphBuilder

F32, I64 = DType.F32, DType.I64
TARGETS = (find("cpu"), find("gfx942"), find("gfx1100"))


class Model(GraphBuilder):
    """A graph under construction, with random inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(11)

    def floats(self, *shape: int) -> Ref:
        return Ref(self.input(self.rng.standard_normal(shape).astype(np.float32), F32))

    def indices(self, high: int, *shape: int) -> Ref:
        return Ref(self.input(self.rng.integers(0, high, shape), I64))

    def op(self, name: str, *args: object, **kwargs: object) -> Ref:
        made = self.call(name, *args, **kwargs)  # type: ignore[arg-type]
        if self.tensors[made].dtype is DType.F64:  # the reference's own precision
            self.tensors[made] = replace(self.tensors[made], dtype=F32)
        return Ref(made)


def softmax_of_a_middle_dimension(m: Model) -> Ref:
    return m.op("aten.softmax.int", m.floats(3, 70, 9), 1)


def log_softmax_of_the_first_dimension(m: Model) -> Ref:
    return m.op("aten.log_softmax.int", m.floats(33, 5), 0)


def norm_between_pointwise(m: Model) -> Ref:
    x = m.op("aten.add.Tensor", m.floats(6, 48), m.floats(6, 48))
    normed = m.op("aten.layer_norm.default", x, (48,), m.floats(48), m.floats(48), 1e-5)
    return m.op("aten.mul.Tensor", m.op("aten.silu.default", normed), x)


def norm_over_groups(m: Model) -> Ref:
    x = m.floats(2, 6, 5, 4)
    return m.op("aten.group_norm.default", x, 3, m.floats(6), m.floats(6), 1e-5)


def mean_of_several_dimensions(m: Model) -> Ref:
    return m.op("aten.mean.dim", m.floats(3, 4, 5, 6), (0, 2), False)


def variance_and_position(m: Model) -> Ref:
    x = m.floats(4, 40, 3)
    spread = m.op("aten.var.correction", x, (1,), correction=1, keepdim=True)
    where = m.op("aten.argmax.default", x, 1, True)
    return m.op("aten.add.Tensor", spread, where)


def inverse_of_the_error_function(m: Model) -> Ref:
    return m.op("aten.erfinv.default", m.op("aten.tanh.default", m.floats(5, 40)))


def sum_of_everything(m: Model) -> Ref:
    return m.op("aten.sum.default", m.op("aten.exp.default", m.floats(40, 30)))


def running_sum_of_the_first_dimension(m: Model) -> Ref:
    return m.op("aten.cumsum.default", m.floats(50, 6), 0)


def parts_and_paddings(m: Model) -> Ref:
    joined = m.op("aten.cat.default", (m.floats(2, 3), m.floats(2, 5)), 1)
    padded = m.op("aten.constant_pad_nd.default", joined, (1, 2, 0, 1), 0.5)
    return m.op("aten.slice.Tensor", padded, 1, 1, 9, 2)


def tables(m: Model) -> Ref:
    rows = m.op("aten.embedding.default", m.floats(11, 16), m.indices(11, 3, 4))
    chosen = m.op("aten.gather.default", rows, 1, m.indices(4, 3, 2, 16))
    return m.op("aten.transpose.int", m.op("aten.relu.default", chosen), 0, 2)


def largest_of_a_window(m: Model) -> Ref:
    return m.op("aten.max_pool2d.default", m.floats(1, 2, 9, 9), (3, 3), (2, 2), (1, 1))


def average_of_a_window(m: Model) -> Ref:
    return m.op("aten.avg_pool2d.default", m.floats(1, 2, 8, 6), (2, 2), (2, 2))


def attention_with_a_mask_and_an_epilogue(m: Model) -> Ref:
    q, k, v = m.floats(1, 2, 20, 16), m.floats(1, 2, 33, 16), m.floats(1, 2, 33, 16)
    mask = m.floats(20, 33)
    out = m.op("aten.scaled_dot_product_attention.default", q, k, v, mask)
    return m.op("aten.mul.Tensor", m.op("aten.transpose.int", out, 1, 2), 0.5)


MODELS: dict[str, Callable[[Model], Ref]] = {
    build.__name__: build
    for build in (
        softmax_of_a_middle_dimension,
        log_softmax_of_the_first_dimension,
        norm_between_pointwise,
        norm_over_groups,
        mean_of_several_dimensions,
        variance_and_position,
        inverse_of_the_error_function,
        sum_of_everything,
        running_sum_of_the_first_dimension,
        parts_and_paddings,
        tables,
        largest_of_a_window,
        average_of_a_window,
        attention_with_a_mask_and_an_epilogue,
    )
}


def run_kernels(graph: Graph, values: dict, *, fuse: bool) -> tuple[Lowered, dict]:
    """Every kernel in order; buffers as storage by name."""
    lowered = lower(graph)
    planned = schedule(lowered, fuse=fuse)
    backend = ROCmCPPScheduling(planned, TARGETS)
    memory = {
        name: to_storage(values[buffer.source_name], bind_buffer(buffer, {}))
        for name, buffer in planned.lowered.buffers.items()
        if buffer.source_name in values and name in lowered.inputs
    }
    for node in planned.nodes:
        assert node.kind.value != "extern", node
        caller = backend.default(node)
        assert set(node.writes) == set(run_one(caller, memory))
    return planned.lowered, memory


def run_one(caller, memory: dict) -> dict:
    made = run(caller, memory)
    memory.update(made)
    return made


@pytest.mark.full(but=["softmax_of_a_middle_dimension"])
@pytest.mark.parametrize("name", MODELS)
def test_kernels_give_what_the_reference_gives(name: str) -> None:
    model = Model()
    result = MODELS[name](model)
    lowered, memory = run_kernels(model.graph(result.name), model.values, fuse=True)
    (output,) = lowered.outputs
    buffer = bind_buffer(lowered.buffers[output], {})
    got, want = from_storage(memory[output], buffer), model.values[result.name]
    assert got.shape == want.shape
    assert np.allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.full
@pytest.mark.parametrize("name", ["norm_between_pointwise", "variance_and_position"])
def test_unfused_kernels_give_the_same(name: str) -> None:
    model = Model()
    result = MODELS[name](model)
    lowered, memory = run_kernels(model.graph(result.name), model.values, fuse=False)
    (output,) = lowered.outputs
    buffer = bind_buffer(lowered.buffers[output], {})
    got = from_storage(memory[output], buffer)
    assert np.allclose(got, model.values[result.name], rtol=2e-5, atol=2e-5)
