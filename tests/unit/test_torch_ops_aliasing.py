"""Who shares memory with whom, and what ops write: as torch's eager mode has it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scheduler.errors import UserError
from scheduler.frontends.pt2 import read
from scheduler.ir.ops import UnsupportedOpError
from scheduler.lowering import coverage, lower
from scheduler.lowering.ops import ROWS, resolve_op
from tests.benchmarks.aliasing import WRONG, outcome
from tests.support.aliasing_programs import program
from tests.unit.torch_export import agree, as_module, export

torch = pytest.importorskip("torch")

# Written without saying so in their name: running statistics, which their frontends follow, and
# shapes, which are no elements.
OTHERWISE = {"aten._batch_norm_with_update", "aten.resize_", "aten.resize_as_"}


def test_every_form_that_writes_is_known_where_the_plain_one_is() -> None:
    """``floor_divide_.Tensor`` beside ``floor_divide.default``: by torch's own schemas."""
    names = {row.name for row in ROWS}
    unknown, otherwise = [], []
    for schema in torch._C._jit_get_all_schemas():
        name, overload = schema.name.removeprefix("aten::"), schema.overload_name or "default"
        plain = name[:-1] if name.endswith("_") and not name.endswith("__") else name
        written = [a.name for a in schema.arguments if a.alias_info and a.alias_info.is_write]
        of_tensors = all("Tensor" in str(a.type) for a in schema.arguments if a.alias_info)
        is_one = len(written) == 1 and of_tensors and len(schema.returns) == 1
        if f"aten.{plain}" not in names or not is_one or f"aten.{name}" in OTHERWISE:
            continue
        if plain == name and written != ["out"]:
            continue  # an overload with a name of its own, whose argument is given by keyword
        try:
            found = resolve_op(f"aten.{name}.{overload}")
        except UnsupportedOpError:
            unknown.append(f"{name}.{overload}")
            continue
        own = {"self", found.params[0].name} if plain != name else set(written)
        if found.mutates and found.mutates not in own:
            otherwise.append(f"{name}.{overload} writes {written}, not {found.mutates}")
    assert otherwise == []
    # Refused: tensors by keyword of an op that is not known may be written.
    assert {name for name in unknown if not name.rpartition(".")[2].startswith(("out", "Out"))} <= {
        "norm.dtype_out"
    }


def channels_last(x: Any) -> Any:
    return x.contiguous(memory_format=torch.channels_last)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "a reshape of every second row is a copy": lambda x: (x[::2].reshape(-1).add_(1), x + 0),
    "a reshape of columns that splits rows is a view": lambda x: (
        x[:, :4].reshape(4, 2, 2).mul_(2).sum(),
        x + 0,
    ),
    "ravel of every second element is a copy": lambda x: (x[0, ::2].ravel().mul_(2), x + 0),
    "ravel of a diagonal is a copy": lambda x: (x.diagonal().ravel().floor_divide_(2), x + 0),
    "ravel of whole rows is a view": lambda x: (x[1:].ravel().mul_(2), x + 0),
    "an expansion to its own size is a view": lambda x: (
        x[0].expand(-1)[0].fill_(2),
        x[1].expand_as(x[2])[1:].mul_(2),
        x + 0,
    ),
    "one element of an expansion": lambda x: (x[0, :1].expand(5)[2].fill_(2), x + 0),
    "a turned matrix is not flattened in its memory": lambda x: (x.t().reshape(-1).add_(1), x + 0),
    "to the same type with copy": lambda x: (x.to(torch.float64, copy=True).add_(1), x + 0),
    "to the same type": lambda x: (x.to(torch.float64).add_(1), x + 0),
    "to another type and back": lambda x: (x.float().double().add_(1), x + 0),
    "contiguous of what is": lambda x: (x.contiguous().add_(1), x + 0),
    "contiguous of what is not": lambda x: (x.t().contiguous().add_(1), x + 0),
    "channels last": lambda x: (channels_last(x.view(1, 2, 3, 4)).add_(1), x + 0),
    "contiguous of channels last": lambda x: (
        channels_last(x.view(1, 2, 3, 4)).contiguous().add_(1),
        x + 0,
    ),
    "lists": lambda x: (torch._foreach_add_([x[0], x[1]], [1.0, 2.0]), x + 0)[1:],
    "products of lists": lambda x: (torch._foreach_mul_([x[0], x[1]], 2.0), x + 0)[1:],
    "an argument that is written": lambda x: (
        (torch.add(x, 1, out=x[1:2].view(1, 6)), x + 0)[1:]
        if x.shape[0] == 1
        else (torch.add(x[0], 1, out=x[1]), x + 0)
    ),
    "a floor of a division": lambda x: (x.floor_divide_(0.3), x + 0),
    "a diagonal": lambda x: (x.fill_diagonal_(7.0), x + 0),
    "a diagonal that goes on": lambda x: (
        x.view(6, 4)[:, :2].fill_diagonal_(7.0, wrap=True),
        x + 0,
    ),
    "the floor of an integer, in place": lambda x: (x.int().floor_(), x.long()[1:].trunc_() * 2),
    "no elements": lambda x: (x[0:0].add_(1), x + 0),
    "what stands there already": lambda x: (x.copy_(x), x + 0),
    "a sum of which the shape alone is read": lambda x: torch.zeros_like((x + 0).add_(1).sin()),
    "a mean that is copied to its place": lambda x: torch.nn.functional.batch_norm(
        x, torch.zeros(6).double(), torch.ones(6).double(), training=True
    ),
    "another's result as it lies": lambda x: (y := x.exp(), x.copy_(y), y)[2],
    "elements that are cut off": lambda x: (y := x + 0, y[2:].add_(1), y[:2])[2],
    "real parts": lambda x: (torch.view_as_complex(x.view(4, 3, 2)).real.add_(1), x + 0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_writes_what_torch_writes_or_is_refused(name: str, tmp_path: Path) -> None:
    x = torch.arange(24, dtype=torch.float64).reshape(4, 6) / 8 + 0.125
    try:
        agree(as_module(PROGRAMS[name]), (x,), tmp_path)
    except (UserError, UnsupportedOpError) as error:
        assert name in {"real parts", "one element of an expansion"}, error


@pytest.mark.full
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_programs_of_views_and_writes_give_what_torch_gives(first: int) -> None:
    """Thousands: ``python -m tests.benchmarks.aliasing``."""
    for seed in range(first, first + 10):
        word, why = outcome(seed)
        assert word != WRONG, f"{seed}\n{program(seed).text}{why}"


def test_an_op_without_a_result_is_never_left_out(tmp_path: Path) -> None:
    """A custom op that exists for what it writes: the file does not say what that is."""

    @torch.library.custom_op("kiln_tests::scale_into", mutates_args=("out",))
    def scale_into(out: torch.Tensor, x: torch.Tensor) -> None:
        out.copy_(x * 2)

    def f(x: Any) -> Any:
        out = torch.empty_like(x)
        scale_into(out, x)
        return out + 1

    _, graph = export(as_module(f), (torch.rand(3),), tmp_path)
    with pytest.raises(UserError, match=r"scale_into.*has no results.*run_decompositions\(\)"):
        lower(graph)


def test_every_node_of_a_graph_is_accounted_for(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        torch._check(x.shape[0] > 1)
        unread = x.sum() * 2
        assert unread is not None
        return torch.special.bessel_j0(x).t() + x.shape[0]

    _, graph = export(as_module(f), (torch.rand(3, 4),), tmp_path)
    lowered = lower(read(tmp_path / "model.pt2"))
    found = coverage.node_statuses(lowered)
    assert found.keys() == {node.name for node in graph.nodes}
    assert coverage.coverage_summary(lowered).startswith(
        f"{len(found)} of {len(graph.nodes)} nodes accounted"
    )
    assert {coverage.NodeStatus.EXTERN, coverage.NodeStatus.FREE} <= set(found.values())
