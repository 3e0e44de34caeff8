"""The reference against torch, op by op, as exported and as decomposed to the core ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scheduler.ir.ops import Elements
from scheduler.lowering import ops
from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
F = torch.nn.functional


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _positive(*size: int) -> Any:
    return torch.rand(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) + 0.1


def _ints(high: int, *size: int) -> Any:
    return torch.randint(0, high, size, generator=torch.Generator().manual_seed(3))


X, P = _randn(3, 4, 5), _positive(3, 4, 5)
SPECIAL = torch.tensor([0.0, -0.0, 1.5, -2.5, 40.0, -40.0, math.inf, -math.inf], dtype=torch.double)

UNARY: list[Callable[[Any], Any]] = [
    *(torch.neg, torch.abs, torch.exp, torch.exp2, torch.expm1, torch.sin, torch.cos, torch.tan),
    *(
        torch.tanh,
        torch.sinh,
        torch.cosh,
        torch.atan,
        torch.asinh,
        torch.erf,
        torch.erfc,
        torch.sigmoid,
    ),
    *(torch.relu, F.relu6, F.silu, F.gelu, F.elu, F.selu, F.celu, F.leaky_relu, F.hardtanh),
    *(F.hardswish, F.hardsigmoid, F.softplus, F.mish, F.logsigmoid, F.hardshrink, F.softshrink),
    *(torch.sign, torch.floor, torch.ceil, torch.round, torch.trunc, torch.frac, torch.square),
    *(torch.isnan, torch.isinf, torch.isfinite, torch.logical_not, torch.reciprocal),
    lambda x: torch.acosh(x.abs() + 1),
    lambda x: torch.atanh(torch.sin(x)),
    torch.erfinv,
    lambda x: torch.erfinv(torch.sin(x)),
    lambda x: torch.copysign(x, x - 1),
    lambda x: torch.copysign(x, -2),
    lambda x: torch.hypot(x, x - 1),
    lambda x: F.gelu(x, approximate="tanh"),
    lambda x: F.softplus(x, beta=2.0, threshold=3.0),
    lambda x: F.elu(x, alpha=0.5),
    lambda x: F.threshold(x, 0.5, -1.0),
    lambda x: torch.clamp(x, -0.5, 0.7),
    lambda x: torch.clamp(x, min=0.1),
    lambda x: torch.clamp_max(x, 0.2),
    lambda x: torch.round(x, decimals=2),
    torch.nan_to_num,
    lambda x: torch.nan_to_num(x, nan=3.0, posinf=1.0, neginf=-1.0),
    lambda x: 2 - x,
    lambda x: x + 2,
    lambda x: torch.rsub(x, 3, alpha=2),
    lambda x: x * 3 / 7,
    lambda x: x // 0.75,
    lambda x: x % 0.75,
    lambda x: torch.fmod(x, 0.75),
    lambda x: x**2,
    lambda x: x**3,
    lambda x: 2.0**x,
    lambda x: torch.where(x > 0, x, 0.0),
    lambda x: x.masked_fill(x > 0.5, -math.inf),
    lambda x: (x > 0) & (x <= 1) | ~(x != 2) ^ (x == 0),
    lambda x: torch.logical_and(x > 0, x < 1) | torch.logical_xor(x >= 0, x > 1),
    lambda x: x.to(torch.int32),
    lambda x: x.to(torch.int64) + 1.5,
    lambda x: x.to(torch.bool),
]


def test_unary_pointwise(tmp_path: Path) -> None:
    finite = torch.nan_to_num(SPECIAL, posinf=1e4, neginf=-1e4)

    def every(x: Any, special: Any, bounded: Any) -> Any:
        outside = [function(special) for function in UNARY[:-3]]
        # Converting an infinity to an integer has no defined result.
        inside = [function(bounded) for function in UNARY[-3:]]
        return tuple([function(x) for function in UNARY] + outside + inside)

    agree(as_module(every), (X, SPECIAL, finite), tmp_path)


def test_pointwise_of_positive_numbers(tmp_path: Path) -> None:
    functions = [
        *(torch.log, torch.log2, torch.log10, torch.log1p, torch.sqrt, torch.rsqrt),
        lambda x: torch.asin(x / 2) + torch.acos(x / 2),
        lambda x: x**0.3,
    ]
    agree(as_module(lambda x: tuple(f(x) for f in functions)), (P,), tmp_path)


def test_binary_pointwise_broadcasts_and_promotes(tmp_path: Path) -> None:
    functions: list[Callable[[Any, Any], Any]] = [
        *(torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, torch.fmod),
        *(torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge),
        *(torch.remainder, torch.floor_divide, torch.true_divide),
        lambda x, y: torch.add(x, y, alpha=3),
        lambda x, y: torch.sub(x, y, alpha=2),
        lambda x, y: torch.div(x, y, rounding_mode="floor"),
        lambda x, y: torch.div(x, y, rounding_mode="trunc"),
        lambda x, y: torch.where(x > y, x, y),
        lambda x, y: torch.clamp(x, min=y),
    ]
    floats = [*functions, torch.atan2, torch.logaddexp]

    def every(x: Any, y: Any, i: Any, j: Any, b: Any) -> Any:
        return (
            *(f(x, y) for f in floats),
            *(f(i, j) for f in functions),
            *(f(x, j) for f in functions),
            *(i & j, i | j, i ^ j, i << (j % 5), i >> (j % 5), ~i, -i, abs(i), i**2, i * b),
            *(i.relu(), torch.sqrt(j), i.float(), torch.sigmoid(i), i.floor(), b * 2, b * 1.5),
            *(torch.lerp(x, y, weight) for weight in (0.3, 0.5, 1.0, -1.5)),
            *(torch.lerp(x * 1e9, y, y * 0 + weight) for weight in (0.2, 1.0)),
            torch.addcmul(x, x, y, value=0.5),
            torch.addcdiv(x, x, y, value=2.0),
            F.prelu(x, y[0, :4, 0]),
            F.glu(x[..., :4]),
        )

    i = _ints(50, 3, 4, 5) - 25
    args = (X, _positive(1, 4, 1), i, _ints(9, 4, 1) + 1, _ints(2, 3, 4, 5).bool())
    agree(as_module(every), args, tmp_path)


@pytest.mark.parametrize("decompose", [False, True])
def test_matrix_multiplications(tmp_path: Path, decompose: bool) -> None:
    a, b = _randn(4, 6), _randn(6, 5)
    s, t = _randn(2, 3, 4, 6), _randn(3, 6, 5)

    def every(a: Any, b: Any, s: Any, t: Any) -> Any:
        return (
            a @ b,
            torch.mm(a, a.t()),
            torch.addmm(b[0], a, b),
            torch.addmm(b[:4], a, b, beta=0.5, alpha=2),
            torch.addmm(torch.full_like(b[:4], math.nan), a, b, beta=0),
            torch.bmm(t, t.transpose(1, 2)),
            torch.baddbmm(t[:, :, :1], t, t.mT @ t, beta=2, alpha=0.5),
            s @ t,
            s @ b,
            s @ b[:, 0],
            b[:, 0] @ b,
            torch.mv(a, b[:, 0]),
            torch.dot(b[:, 0], b[:, 1]),
            torch.outer(b[:, 0], b[:, 1]),
            torch.einsum("bhik,hkj->bhij", s, t),
            F.linear(s, a, b[:4, 0]),
            F.linear(s, a),
            F.linear(b[:, 0], a),
        )

    agree(as_module(every), (a, b, s, t), tmp_path, decompose=decompose)


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_convolutions(tmp_path: Path, decompose: bool) -> None:
    x, w = _randn(2, 6, 9, 8), _randn(12, 3, 3, 2)

    def every(x: Any, w: Any) -> Any:
        bias = w[:, 0, 0, 0]
        return (
            F.conv2d(x, w, bias, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2),
            F.conv2d(x, w[:6, :1], groups=6),
            F.conv2d(x, w[:, :, :1, :1], bias, groups=2),
            F.conv2d(x[:, :3], w, padding="same"),
            F.conv2d(x[0, :3], w, stride=3),
            F.conv2d(x.to(memory_format=torch.channels_last), w, groups=2),
            F.conv1d(x[..., 0], w[..., 0], padding=1, groups=2),
            F.conv3d(x[:, :3, :, :, None], w[..., None], padding=(1, 1, 0)),
        )

    agree(as_module(every), (x, w), tmp_path, decompose=decompose)


def test_attention(tmp_path: Path) -> None:
    q, k, v = _randn(2, 4, 5, 8), _randn(2, 4, 7, 8), _randn(2, 4, 7, 6)
    mask = torch.ones(5, 7, dtype=torch.bool).tril()
    mask[3] = False

    def every(q: Any, k: Any, v: Any, mask: Any) -> Any:
        attend = F.scaled_dot_product_attention
        return (
            attend(q, k, v),
            attend(q, k, v, is_causal=True),
            attend(q, k, v, scale=0.3),
            attend(q, k, v, attn_mask=mask),
            attend(q, k, v, attn_mask=torch.where(mask, 0.0, -1e9).double()),
            attend(q, k[:, :2], v[:, :2], enable_gqa=True),
            attend(q[0], k[0], v[0]),
        )

    agree(as_module(every), (q, k, v, mask), tmp_path)


@pytest.mark.parametrize("decompose", [False, True])
def test_normalisations(tmp_path: Path, decompose: bool) -> None:
    class Norms(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(
                [
                    torch.nn.LayerNorm(8),
                    torch.nn.LayerNorm((7, 8), elementwise_affine=False),
                    torch.nn.GroupNorm(3, 6),
                    torch.nn.BatchNorm2d(6),
                    torch.nn.BatchNorm2d(6, affine=False),
                    torch.nn.InstanceNorm2d(6, affine=True),
                    torch.nn.RMSNorm(8),
                    torch.nn.RMSNorm(8, eps=1e-3),
                    torch.nn.Softmax(dim=-1),
                    torch.nn.LogSoftmax(dim=1),
                ]
            )
            for parameter in self.parameters():
                torch.nn.init.uniform_(parameter, 0.5, 1.5)
            self.layers[3].running_mean.uniform_(-1, 1)
            self.layers[3].running_var.uniform_(0.5, 2)

        def forward(self, x: Any) -> Any:
            return tuple(layer(x) for layer in self.layers)

    agree(Norms().double(), (_randn(2, 6, 7, 8),), tmp_path, decompose=decompose)


@pytest.mark.parametrize("decompose", [False, True])
def test_reductions(tmp_path: Path, decompose: bool) -> None:
    tie = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, math.nan]], dtype=torch.double)

    def every(x: Any, i: Any, tie: Any) -> Any:
        return (
            *(x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), i.sum(0), (x > 0).sum(-1)),
            *(x.mean(), x.mean(-1, keepdim=True), x.prod(), x.prod(1), i.prod(0)),
            *(x.amax(1), x.amin((0, 1)), x.max(), x.min(), *x.max(1), *x.min(2, keepdim=True)),
            *(x.var(), x.var(1), x.var((0, 1), correction=0), x.std(1, unbiased=False)),
            *(*torch.var_mean(x, 1), *torch.std_mean(x, (0, 2))),
            *(x.argmax(), x.argmax(1), x.argmin(-1, keepdim=True), tie.argmax(1), *tie.max(1)),
            *(i.argmax(0), tie.amax(1), (x > 0).any(), (x > 0).all(1), (x > 0).any((0, 1))),
            *(x.cumsum(1), i.cumsum(-1), x.cumprod(0), (x > 0).cumsum(2), x.logsumexp(1)),
            *(x.norm(), x.norm(dim=1), torch.linalg.vector_norm(x, 3, dim=(0, 1)), x.norm(1)),
            *(*x.topk(2, dim=1), *x.sort(1), *x.sort(-1, descending=True), *tie.sort(1)),
            *(x.max(dim=0)[0], torch.softmax(x, 0), i.max(), torch.sum(i, 0, dtype=torch.double)),
        )

    agree(as_module(every), (X, _ints(9, 3, 4, 5), tie), tmp_path, decompose=decompose)


@pytest.mark.parametrize("decompose", [False, True])
def test_pooling(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any) -> Any:
        return (
            F.max_pool2d(x, 3, 2, 1),
            F.max_pool2d(x, (3, 2), dilation=(1, 2)),
            F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
            *F.max_pool2d(x, 3, 2, 1, return_indices=True),
            F.avg_pool2d(x, 3, 2, 1),
            F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
            F.avg_pool2d(x, (4, 3), (3, 2), (2, 1), ceil_mode=True, count_include_pad=False),
            F.avg_pool2d(x, 2, divisor_override=3),
            F.adaptive_avg_pool2d(x, 1),
            F.adaptive_avg_pool2d(x, (4, 3)),
            F.adaptive_avg_pool2d(x, (None, 3)),
            F.adaptive_avg_pool1d(x[0], 3),
            *F.adaptive_max_pool2d(x, (4, 3), return_indices=True),
            F.max_pool1d(x[0], 3, 2),
            F.avg_pool1d(x[0], 3, 2, 1),
            F.interpolate(x, scale_factor=2.0, mode="nearest"),
            F.interpolate(x, size=(5, 13), mode="nearest"),
            F.pixel_shuffle(x, 2),
        )

    agree(as_module(every), (_randn(2, 4, 10, 9),), tmp_path, decompose=decompose)


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_views_and_shapes(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any, one: Any) -> Any:
        return (
            *(x.view(12, 5), x.reshape(-1, 2), x.permute(2, 0, 1), x.transpose(0, 2), x[0].t()),
            *(x.flatten(1), x.unflatten(1, (2, -1)), one.squeeze(), one.squeeze(0), x.mT),
            *(one.squeeze((0, 2)), x.unsqueeze(-1), one.expand(4, 3, 2), one.expand(2, -1, 4)),
            *(x[1:, ::2], x[..., -3:-1], x[:, 2], x[-1, :, 3], x.narrow(1, 1, 2), x[1, 2, 3]),
            *(*x.split(2, 1), *x.split([1, 4], -1), *x.chunk(3, 1), *x.unbind(0)),
            *(x.contiguous(), x.transpose(0, 1).contiguous(), x.clone(), x.movedim(0, -1)),
            *(torch.cat([x, x], 1), torch.stack([x, x], -1), x.flip(0, 2), x.roll(2, 1), x.roll(3)),
            *(x.repeat(2, 1, 3), x.tile(2, 2), x.repeat_interleave(2, 1), x.diagonal(0, 1, 2)),
            *(
                F.pad(x, (1, 2, 0, 1), value=0.5),
                F.pad(x, (-1, 1)),
                F.pad(x, (2, 1), mode="reflect"),
            ),
            *(F.pad(x, (2, 1), mode="replicate"), F.pad(x, (1, 1), mode="circular")),
            *(x.diff(), x.diff(dim=0, prepend=x[:1]), (x > 0).diff(dim=1), x.tril(), x.triu(1)),
            *(x.unfold(2, 3, 2), torch.cat([x[:, :0], x], 1), *torch.broadcast_tensors(one, x[:1])),
            *(x.expand_as(x), x.view_as(x), one.broadcast_to(2, 3, 1), x.type_as(x)),
            *torch.meshgrid(x[0, 0], x[0, :, 0], indexing="ij"),
        )

    one = _randn(1, 3, 1)
    agree(as_module(lambda x, o: every(x, o[:, :1])), (X, one), tmp_path, decompose=decompose)


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_indexing(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any, i: Any, mask: Any) -> Any:
        index = i.view(1, 2, 3)
        return (
            *(F.embedding(i, x[:, 0]), x[i], x[:, i], x[i, i], x[i, :, i], x[:, i, i]),
            *(x[i[0][:, None], i[1]], x[..., i], x.index_select(1, i[0]), x[-i]),
            *(x.gather(1, index), x.gather(-1, index), x.take_along_dim(index[:, :1, :1], 1)),
            *(x.scatter(1, index, 7.0), x.scatter(2, index, x), x.scatter_add(0, index, x)),
            *(x.index_put((i[0],), x[0]), x.index_put((i[0],), x, accumulate=True)),
            *(x.slice_scatter(x[:, :2], 1, 0, 4, 2), x.select_scatter(x[:, 0], 1, 2)),
            *(F.one_hot(i, 5), x.masked_fill(mask, 2.0), torch.where(mask, x, 1)),
            x.masked_fill(mask, torch.tensor(3.0, dtype=torch.double)),
        )

    args = (X, _ints(3, 2, 3), X > 0)
    agree(as_module(every), args, tmp_path, decompose=decompose)


@pytest.mark.parametrize("decompose", [False, True])
def test_creation_and_conversion(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any, i: Any) -> Any:
        return (
            *(torch.arange(5), torch.arange(1, 9, 3), torch.arange(0, 1, 0.25), torch.arange(5.0)),
            *(torch.full((2, 3), 7), torch.full((2,), 1.5), torch.full((1,), True)),
            *(torch.zeros(2, 3), torch.ones(4, dtype=torch.int32), torch.eye(3), torch.eye(2, 4)),
            *(torch.full_like(x, 2), torch.zeros_like(i), torch.ones_like(i, dtype=torch.double)),
            *(x.new_ones(2, 3), x.new_zeros(4), i.new_full((2,), 9), torch.linspace(0, 1, 7)),
            *(x.to(torch.int32), (x * 100).to(torch.uint8).to(torch.int8), i.to(torch.double)),
            *(i.bool(), x.bool(), i.to(x.dtype), torch.scalar_tensor(3.0), x.type_as(i)),
            *(F.dropout(x, 0.5, training=False), x.detach(), i.new_empty(3).fill_(4)),
        )

    args = (X.abs(), _ints(5, 3, 4))
    program_args = (args[0], args[1])
    agree(as_module(every), program_args, tmp_path, decompose=decompose)


def test_in_place_forms_write_through_views(tmp_path: Path) -> None:
    def every(x: Any) -> Any:
        y = x * 1
        y[:, 1].add_(10)
        y.view(12, 5)[0].mul_(3).relu_()
        y[0] = 7
        z = y.transpose(0, 1)
        z.clamp_(max=5).sub_(1)
        w = y.float()
        w.zero_()
        y[y > 3] = 0
        y.masked_fill_(y < 0, 0.5)
        v = (x + 1).unsqueeze_(0)
        v.mul_(2)
        return y, z, w, y + 1, v, v.detach_().squeeze_(0) + 1

    agree(as_module(every), (X,), tmp_path)


INT64 = 4  # c10's number, in defaults of schemas


def torch_overloads(name: str) -> list[str]:
    return list(getattr(torch.ops.aten, name).overloads())


def test_every_entry_of_the_op_table_is_torchs_own_schema() -> None:
    for target in (target for row in ops.ROWS for target in row.targets):
        if not target.startswith("aten."):
            continue
        _, name, overload = target.split(".")
        if not hasattr(torch.ops.aten, name) or overload not in torch_overloads(name):
            name += "_"  # only the in-place form is there
        schema = getattr(getattr(torch.ops.aten, name), overload)._schema
        spec = ops.resolve_op(target)
        assert [p.name for p in spec.params] == [a.name for a in schema.arguments], target
        assert [p.keyword_only for p in spec.params] == [a.kwarg_only for a in schema.arguments]
        for param, argument in zip(spec.params, schema.arguments, strict=True):
            assert param.required == (not argument.has_default_value()), (target, param.name)
            default = argument.default_value if argument.has_default_value() else None
            default = tuple(default) if isinstance(default, list) else default
            if param.name == "dtype" and default == INT64:
                default = None  # what these take None for
            if param.name != "memory_format":
                assert param.default == default, (target, param.name)


# torch's schema of these says that the result is new, and its code returns the argument itself.
RETURNED_AS_IS = {
    *("aten.type_as", "aten.dropout", "aten.feature_dropout", "aten.alpha_dropout"),
    *("aten.feature_alpha_dropout", "aten.atleast_1d", "aten.atleast_2d", "aten.atleast_3d"),
}
# Views without torch's own account of who shares memory with whom.
UNTOLD = {f"aten.{name}" for name in ("_unsafe_view", "unsafe_split", "unsafe_chunk")}
UNTOLD |= {"aten.unsafe_split_with_sizes"}
# Rows that files have in place alone, where their memory is the argument's.
IN_PLACE_ALONE = {"aten.resize", "aten.resize_as"}


def test_every_entry_of_the_op_table_views_what_torch_says_it_views() -> None:
    viewing = {Elements.VIEWED, Elements.RESHAPED, Elements.VIEWED_IF_CONTIGUOUS}
    viewing.add(Elements.CONVERTED)
    for row in ops.ROWS:
        for target in row.targets:
            namespace, name, overload = (*target.split("."), "")[:3]
            name += "_" if row.name in IN_PLACE_ALONE else ""
            packet = getattr(torch.ops.aten, name, None) if namespace == "aten" else None
            if packet is None or row.name in RETURNED_AS_IS | UNTOLD:
                continue
            if overload == "out" or overload not in torch_overloads(name):
                continue  # what it says is that its argument is written
            returns = getattr(packet, overload)._schema.returns
            says = any(value.alias_info is not None for value in returns)
            assert (row.elements in viewing) == says, target


def test_what_torch_returns_as_it_is_shares_its_memory() -> None:
    calls = {
        "aten.type_as": lambda x: x.type_as(x),
        "aten.dropout": lambda x: torch.ops.aten.dropout(x, 0.5, False),
        "aten.feature_dropout": lambda x: torch.ops.aten.feature_dropout(x, 0.5, False),
        "aten.feature_alpha_dropout": lambda x: torch.ops.aten.feature_alpha_dropout(x, 0.5, False),
        "aten.alpha_dropout": lambda x: torch.ops.aten.alpha_dropout(x, 0.5, False),
        "aten._unsafe_view": lambda x: torch.ops.aten._unsafe_view(x, [60]),
        "aten.unsafe_split": lambda x: torch.ops.aten.unsafe_split(x, 1)[0],
        "aten.unsafe_split_with_sizes": lambda x: x.unsafe_split_with_sizes([1, 2])[0],
        "aten.unsafe_chunk": lambda x: x.unsafe_chunk(3)[0],
        "aten.atleast_1d": torch.atleast_1d,
        "aten.atleast_2d": torch.atleast_2d,
        "aten.atleast_3d": torch.atleast_3d,
    }
    assert calls.keys() == RETURNED_AS_IS | UNTOLD
    for name, function in calls.items():
        assert function(X).data_ptr() == X.data_ptr(), name
