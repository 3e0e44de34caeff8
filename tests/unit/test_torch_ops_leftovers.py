"""What torch's own database of ops found wrong last, beside torch. ``tests/unit/lowering/
test_torch_ops.py`` lowers and fuses the same uses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scheduler.ir.dtypes import DType  # noqa: E402
from scheduler.ir.operations import Extern  # noqa: E402
from scheduler.ir.ops import UnsupportedOpError  # noqa: E402
from scheduler.lowering import lower  # noqa: E402
from scheduler.reference import run  # noqa: E402
from tests.support.exported_kernels import outputs_of  # noqa: E402
from tests.unit.lowering.agreeing import assert_lowers  # noqa: E402
from tests.unit.torch_export import agree, as_module, export, inputs_of  # noqa: E402

NARROW = (torch.float16, torch.bfloat16)


def _spaced(x: Any) -> Any:
    made = [
        torch.linspace(*bounds, dtype=dtype)
        for dtype in NARROW
        for bounds in ((-2.0, 1, 50), (4.3, -3, 50), (0, 4, 300), (1.3, 2, 1), (1, 2, 0))
    ]
    powers = [
        torch.logspace(*bounds, dtype=dtype)
        for dtype in (*NARROW, torch.float32, torch.int64)
        for bounds in ((-0.7, 3.3, 7), (4.3, 1, 1), (0.3, 2.2, 9, 2.0))
    ]
    last = torch.linspace(x[0].half(), x[1], 40, dtype=torch.float16)
    return (*made, *powers, last, torch.logspace(x[0], x[1], 5, dtype=torch.bfloat16))


def test_steps_of_16_bits_are_those_that_torch_takes_in_the_type(tmp_path: Path) -> None:
    """A step that is rounded elsewhere is off by more and more bits."""
    x = torch.tensor([-0.3, 2.7])
    module = as_module(_spaced)
    _, graph = export(module, (x,), tmp_path)
    values = {graph.inputs[0].name: x.double().numpy()}
    assert not [op for op in lower(graph).operations if isinstance(op, Extern)]
    expected = [one.double().numpy() for one in module(x)]
    for got in (run(graph, values, {}), outputs_of(graph, values)):
        for name, want in zip(graph.outputs, expected, strict=True):
            dtype = graph.tensors[name].dtype
            off = max(4 * dtype.eps, 1.3e-6)  # powers; linspace is the same to the last bit
            linear = name.startswith("linspace")
            have = np.asarray(got[name], np.float64)
            np.testing.assert_allclose(have, want, rtol=0 if linear else off, err_msg=name)


def test_repetitions_as_a_tensor_says_with_the_size_given(tmp_path: Path) -> None:
    def f(x: Any, t: Any) -> Any:
        once = t[:1] * 0 + 2
        return (
            torch.repeat_interleave(x, t, 0, output_size=6),
            torch.repeat_interleave(x.T, t, -1, output_size=6),
            torch.repeat_interleave(x[:2], t, output_size=6) * 2,
            torch.repeat_interleave(x, once, 1, output_size=4),
            torch.repeat_interleave(t, output_size=6) + 1,
            torch.repeat_interleave(x[:, :0], t, 0, output_size=6),
            torch.repeat_interleave(x, t * 0, 0, output_size=0),
        )

    x = torch.randn(4, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    agree(as_module(f), (x, torch.tensor([0, 3, 1, 2])), tmp_path)


@pytest.mark.parametrize("decompose", [False, True])
def test_offsets_in_memory_that_an_example_was_a_part_of(tmp_path: Path, decompose: bool) -> None:
    """torch counts them from the start of that memory; whoever runs the model has only the part."""

    class Parts(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("part", torch.arange(20.0)[4:].view(4, 4).t())

        def forward(self, x: Any) -> Any:
            y = x.t()
            return (
                x.as_strided((2, 2), (2, 1)),
                x.as_strided((2, 2), (2, 1), 7) + 1,
                torch.as_strided_copy(y, (3,), (2,), 6),
                torch.as_strided(self.part, (2, 2), (2, 1), 5) * 2,
                torch.as_strided_scatter(x, x[0, :2], (2,), (3,), 9),
                (x * 2).as_strided((2, 2), (2, 1), 1),
            )

    x, module = torch.arange(30.0)[5:21].view(4, 4), Parts()
    program, graph = export(module, (x,), tmp_path, decompose=decompose)
    values = inputs_of(program, graph, (x,))  # copies: their memory begins with them
    got = run(graph, values, {})
    for name, expected in zip(graph.outputs, module(x), strict=True):
        np.testing.assert_array_equal(got[name], expected.numpy(), err_msg=name)
    assert_lowers(graph, values, {}, got)


def test_memory_before_an_example_is_refused(tmp_path: Path) -> None:
    x = torch.arange(30.0)[5:21].view(4, 4)
    module = as_module(lambda x: x.as_strided((2, 2), (2, 1), 3))
    _, graph = export(module, (x,), tmp_path)
    with pytest.raises(UnsupportedOpError, match="a strided view that leaves its memory"):
        run(graph, {graph.inputs[0].name: x.double().numpy()}, {})


def test_what_is_rolled_may_be_empty(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return x.roll(2), x.roll((1, 2), (0, -1)), x.reshape(0).roll(1), x.sum(1).roll(3, 1)

    agree(as_module(f), (torch.ones(3, 2, 0),), tmp_path)


def test_a_running_log_sum_exp_of_complex_numbers_turns_as_torch_s_does(tmp_path: Path) -> None:
    """Angles beyond half a turn: the principal value is another number."""
    g = torch.Generator().manual_seed(8)
    x = 3 * torch.randn(5, 40, generator=g, dtype=torch.complex128)
    module = as_module(lambda x: (x.logcumsumexp(1), (2 * x[:, :3]).logcumsumexp(0)))
    agree(module, (x,), tmp_path)
    assert any((one.imag.abs() > 3.2).any() for one in module(x))


def test_what_is_counted_is_int64_or_the_weights_type(tmp_path: Path) -> None:
    def f(x: Any, w: Any) -> Any:
        return x.bincount(), x.bincount(w), x.bincount(w.double(), 9)

    x = torch.tensor([1, 1, 4], dtype=torch.uint8)
    _, graph = export(as_module(f), (x, torch.rand(3)), tmp_path)
    assert [graph.tensors[name].dtype for name in graph.outputs] == [
        DType.I64,
        DType.F32,
        DType.F64,
    ]


def test_atanh_near_the_left_half_of_the_real_axis(tmp_path: Path) -> None:
    """Where 1 plus the argument of its logarithm has few digits left."""
    real = torch.tensor([-0.99, -2.0, -0.3, -40.0, 0.99, 40.0])
    x = torch.complex(real, torch.full_like(real, 1e-3))
    _, graph = export(as_module(lambda x: x.atanh()), (x,), tmp_path)
    values = {graph.inputs[0].name: x.to(torch.complex128).numpy()}
    (got,) = outputs_of(graph, values).values()
    np.testing.assert_allclose(got, x.to(torch.complex128).atanh().numpy(), rtol=1e-6)


def test_losses_of_a_linear_layer_in_parts(tmp_path: Path) -> None:
    function = getattr(torch.nn.functional, "linear_cross_entropy", None)
    if function is None:
        pytest.skip("torch before 2.13")
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2, acc_dtype=torch.float64)

    def f(x: Any, w: Any, t: Any, bias: Any) -> Any:
        given = {"options": options}
        return (
            function(x, w, t, reduction="none", **given),
            function(x, w, t, linear_bias=bias, weight=bias.exp(), ignore_index=2, **given),
            function(x, w, t, reduction="sum", label_smoothing=0.2, **given),
        )

    g = torch.Generator().manual_seed(2)
    x, w, bias = (torch.randn(*n, generator=g, dtype=torch.float64) for n in ((6, 4), (5, 4), (5,)))
    with torch.no_grad():
        graph = agree(as_module(f), (x, w, torch.tensor([0, 2, 1, 4, 4, 3]), bias), tmp_path)
    assert any("chunked" in node.target for node in graph.nodes)


def test_hashes_by_exclusive_or(tmp_path: Path) -> None:
    def f(x: Any, n: Any) -> Any:
        return x.hash_tensor(), x.half().hash_tensor(1), n.hash_tensor((0, -1), keepdim=True)

    if not hasattr(torch, "hash_tensor"):
        pytest.skip("torch before 2.9")
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    module = as_module(f)
    program, graph = export(module, (x, -x.int()), tmp_path)
    got = run(graph, inputs_of(program, graph, (x, -x.int())), {})
    for name, expected in zip(graph.outputs, module(x, -x.int()), strict=True):
        np.testing.assert_array_equal(got[name], expected.numpy())


def test_scaled_products_of_named_kinds(tmp_path: Path) -> None:
    f8 = torch.float8_e4m3fn

    def f(x: Any, y: Any, rows: Any, columns: Any) -> Any:
        whole = [[rows[:1, 0]], [0], [0], [columns[0, :1]], [0], [0]]
        lines = [[rows], [1], [0], [columns], [1], [0]]
        return (
            torch.ops.aten._scaled_mm_v2(x, y.t(), *whole, None, torch.bfloat16),
            torch.ops.aten._scaled_mm_v2(x, y.t(), *lines, None, torch.bfloat16),
        )

    g = torch.Generator().manual_seed(4)
    x, y = (torch.randn(n, 16, generator=g).to(f8) for n in (5, 32))
    rows, columns = torch.rand(5, 1, generator=g), torch.rand(1, 32, generator=g)
    args = (x, y, rows, columns)
    try:
        expected = as_module(f)(*args)
    except (AttributeError, RuntimeError):
        pytest.skip("not on this torch's CPU")
    program, graph = export(as_module(f), args, tmp_path)
    values = inputs_of(program, graph, args)
    got = run(graph, values, {})
    for name, want in zip(graph.outputs, expected, strict=True):
        np.testing.assert_allclose(got[name], want.double().numpy(), rtol=2**-8, atol=1e-3)
    assert_lowers(graph, values, {}, got)
