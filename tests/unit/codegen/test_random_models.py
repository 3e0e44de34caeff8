"""Random models as kernels: lowering, fusion, codegen and the compiler against the reference.

Many more of them, at any pace: ``python -m tests.benchmarks.fuzz``.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from scheduler.build.flags import Flags
from scheduler.ir.dtypes import DType
from scheduler.targets import find
from tests.support.caches import KEPT
from tests.support.models_as_kernels import compile_all, differences, prepare, run
from tests.support.random_models import BINDINGS, SYMBOL, RandomModel, random_model

QUICK = Flags(("-O1",))  # compiled sooner; the compiler's own optimisation is not what is tested
MODELS = 16  # of one compilation


def check_models(models: list[RandomModel], target: str = "cpu", *, fuse: bool = True) -> None:
    """All of them agree with the reference at every size."""
    emulated = find(target)
    prepared = [prepare(model.graph(), emulated, fuse=fuse) for model in models]
    library = compile_all(prepared, emulated, KEPT, QUICK)
    for model, one in zip(models, prepared, strict=True):
        for place, bindings in enumerate(BINDINGS):
            inputs = {given.name: model.values[given.name][place] for given in model.inputs}
            got = run(one, library, emulated, inputs, bindings)
            faults, compared, total = differences(one.graph, got, inputs, bindings)
            assert not faults, (bindings, faults, one.graph.nodes)
            assert total == 0 or compared > 0


# Without shrinking: each step would compile everything again. The graph is in the message.
@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@pytest.mark.long
@given(
    st.lists(st.integers(0, 2**32), min_size=MODELS, max_size=MODELS, unique=True),
    st.sampled_from(("cpu", "cpu-gfx1100")),
)
def test_random_models_agree_with_the_reference(seeds: list[int], target: str) -> None:
    check_models([random_model(Random(seed), 6) for seed in seeds], target)


def test_what_random_models_found_stays_found() -> None:
    """Each of these was wrong, or did not compile, once."""
    check_models(
        [narrow_integers_beside_literals(), a_write_into_a_copy_of_repeated_rows(), no_rows()]
    )


def narrow_integers_beside_literals() -> RandomModel:
    model = RandomModel(Random(1))
    for dtype in (DType.I8, DType.U8, DType.I16):
        x = model.input([7, 5], dtype)
        model.call("floor_divide.default", dtype, x, 3)
        model.call("remainder.Scalar", dtype, x, 3)
        model.call("div.Tensor_mode", dtype, x, 2, rounding_mode="trunc")
        model.call("maximum.default", dtype, x, model.call("ones_like.default", dtype, x))
    return model


def a_write_into_a_copy_of_repeated_rows() -> RandomModel:
    model = RandomModel(Random(2))
    x = model.input([3, 4], DType.F32)
    seen = model.call("repeat.default", DType.F32, x, (2, 1))
    copy = model.call("clone.default", DType.F32, seen)
    row = model.call("select.int", DType.F32, copy, 0, 0)
    wrote = model.call("mul_.Tensor", DType.F32, row, 2.0)
    for memory, written in zip(model.values[row.name], model.values[wrote.name], strict=True):
        memory[...] = written
    model.call("add.Tensor", DType.F32, copy, seen)
    return model


def no_rows() -> RandomModel:
    """Reductions along a dimension of no elements, and norms of them."""
    model = RandomModel(Random(5))
    x = model.input([SYMBOL, 6], DType.F16)
    none = model.call("slice.Tensor", DType.F16, x, 1, 6, 6)
    model.call("layer_norm.default", DType.F16, none, (0,))
    model.call("softmax.int", DType.F16, none, 1)
    model.call("sum.dim_IntList", DType.F16, none, (1,), False)
    model.call("cumsum.default", DType.F16, none, 1)
    return model


def test_a_wrong_kernel_is_found() -> None:
    """The check itself: the largest element off by a thousandth does not pass."""
    model = RandomModel(Random(3))
    x = model.input([40, 8], DType.F32)
    last = model.call("softmax.int", DType.F32, model.call("exp.default", DType.F32, x), 1)
    graph, inputs = model.graph(), {x.name: model.values[x.name][0]}
    got = {name: np.array(model.values[name][0]) for name in graph.outputs}
    assert differences(graph, got, inputs, BINDINGS[0])[0] == []
    wrong = got[last.name]
    wrong[np.unravel_index(wrong.argmax(), wrong.shape)] *= 1.001
    assert differences(graph, got, inputs, BINDINGS[0])[0]


def test_what_has_no_kernel_runs_between_kernels() -> None:
    model = RandomModel(Random(4))
    x = model.input([4, 4], DType.F32)
    turned = model.call("permute.default", DType.F32, x, (1, 0))
    made = model.call("linalg_matrix_exp.default", DType.F32, turned)
    model.call("tanh.default", DType.F32, model.call("flip.default", DType.F32, made, (1,)))
    prepared = prepare(model.graph(), find("cpu"))
    assert [extern.op for extern in prepared.generated.externs] == [
        "aten.linalg_matrix_exp.default"
    ]
    check_models([model])


@pytest.mark.full
@pytest.mark.parametrize("fuse", [True, False])
def test_a_model_with_and_without_fusion(fuse: bool) -> None:
    check_models([random_model(Random(seed), 12) for seed in (11, 12, 13)], fuse=fuse)
