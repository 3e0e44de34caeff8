"""Views by strides, exchanged parts, bags and bins: the reference against torch, and (beside
``lowering``) the kernels' operations against the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scheduler.ir.operations import Extern
from scheduler.ir.ops import UnsupportedOpError
from scheduler.lowering import lower
from scheduler.reference import run
from tests.unit.test_torch_ops_writes import many, places, values
from tests.unit.torch_export import agree, export, inputs_of

torch = pytest.importorskip("torch")
aten = torch.ops.aten


@pytest.mark.parametrize("decompose", [False, True])
def test_a_part_exchanged(tmp_path: Path, decompose: bool) -> None:
    module = many(
        lambda x, s: torch.slice_scatter(x, s[:, :3], 1, -4, -1),
        lambda x, s: torch.slice_scatter(x, s[:2], 0, 1, 99, 2),
        lambda x, s: torch.slice_scatter(x, s[:, :0], 1, 9, 12),
        lambda x, s: torch.slice_scatter(x, s[:, :2], 1, -99, 2),
        lambda x, s: torch.select_scatter(x, s[0], 0, -1),
        lambda x, s: torch.diagonal_scatter(x, s[0, :4], 1),
        lambda x, s: torch.diagonal_scatter(x[None], s[None, 0, :3], -1, 1, 2),
        lambda x, s: torch.diagonal_scatter(x[None], s[None, 0, :4], 0, -1, -2),
    )
    args = (values(torch.float64, 4, 5), values(torch.float64, 4, 5, seed=2))
    agree(module, args, tmp_path, decompose=decompose)


@pytest.mark.parametrize("decompose", [False, True])
def test_gradients_of_taking_a_part(tmp_path: Path, decompose: bool) -> None:
    module = many(
        lambda g: aten.select_backward(g, [4, 3, 5], 1, -1),
        lambda g: aten.slice_backward(g, [4, 11], 1, 1, 11, 2),
        lambda g: aten.slice_backward(g, [9, 5], 0, -4, 9223372036854775807, 1),
        lambda g: aten.diagonal_backward(g, [4, 6, 7], -1, 1, 2),
        lambda g: aten.unfold_backward(g[None], [1, 11], 1, 5, 2),
        lambda g: aten.unfold_backward(g, [15], 0, 5, 3),
    )
    agree(module, (values(torch.float64, 4, 5),), tmp_path, decompose=decompose)


@pytest.mark.parametrize("decompose", [False, True])
def test_views_by_strides(tmp_path: Path, decompose: bool) -> None:
    def written(x: Any) -> Any:
        y = x * 2
        y.as_strided((3, 2), (5, 1), 1).add_(1)
        return y

    module = many(
        lambda x: x.as_strided((3, 4), (4, 1)),
        lambda x: x.as_strided((2, 3, 4), (1, 2, 3), 2),
        lambda x: x.as_strided((4, 4), (1, 1)),
        lambda x: x.as_strided((2, 3), (0, 2), 1) + 1,
        lambda x: x.t().as_strided((5, 4), (4, 1), 0),
        lambda x: x.t().contiguous().as_strided((2, 2), (3, 2), 4),
        lambda x: (x * 2).view(20).as_strided((), (), 7),
        lambda x: x.as_strided((0, 3), (1, 1)),
        lambda x: torch.as_strided_copy(x, (2, 2), (7, 3), 1),
        lambda x: torch.as_strided_scatter(x, x[:2, :3] * 3, (2, 3), (6, 1), 2),
        lambda x: torch.as_strided_scatter(x.t(), x[:2, :3] * 3, (2, 3), (4, 2), 1),
        written,
    )
    agree(module, (values(torch.float64, 4, 5),), tmp_path, decompose=decompose)


def test_empty_tensors_with_strides(tmp_path: Path) -> None:
    module = many(
        lambda x: torch.empty_strided((3, 4), (1, 3)).zero_() + x,
        lambda x: x.new_empty_strided((3, 4), (4, 1)).fill_(2) + x,
        lambda x: torch.empty_permuted((3, 4), (1, 0)).zero_() + x,
    )
    agree(module, (values(torch.float64, 3, 4),), tmp_path)


@pytest.mark.parametrize("decompose", [False, True])
def test_bags_of_rows(tmp_path: Path, decompose: bool) -> None:
    def bag(mode: str, **options: Any) -> Any:
        return lambda w, i, o, s: torch.nn.functional.embedding_bag(i, w, o, mode=mode, **options)

    module = many(
        *(bag(mode) for mode in ("sum", "mean", "max")),
        *(bag(mode, padding_idx=2) for mode in ("sum", "mean", "max")),
        bag("mean", include_last_offset=True),
        lambda w, i, o, s: torch.nn.functional.embedding_bag(
            i, w, o, mode="sum", per_sample_weights=s
        ),
        lambda w, i, o, s: torch.nn.functional.embedding_bag(i.view(5, 3), w, mode="max"),
        lambda w, i, o, s: aten._embedding_bag_forward_only(w, i, o, False, 1)[0],
        lambda w, i, o, s: aten._embedding_bag(w, i, o, False, 1)[2],
        lambda w, i, o, s: aten._embedding_bag(w, i, o, False, 2)[1],
        lambda w, i, o, s: aten._embedding_bag(w, i, o, False, 2)[3],
    )
    offsets = torch.tensor([0, 4, 4, 9, 15])
    args = (values(torch.float64, 7, 3), places(7, 15), offsets, values(torch.float64, 15, seed=5))
    agree(module, args, tmp_path, decompose=decompose)


def test_histograms(tmp_path: Path) -> None:
    module = many(
        lambda x: torch.histc(x, 7, -1, 1),
        lambda x: torch.histc(x, 5),
        lambda x: torch.histc(x.abs().ceil().clamp(1, 1), 4),
        lambda x: torch.histc(x[:0], 3),
        lambda x: torch.histc(torch.where(x > 0, torch.nan, x), 3, -2, 0),
    )
    agree(module, (values(torch.float64, 40, 3),), tmp_path)


def test_runs_of_elements(tmp_path: Path) -> None:
    def reduced(reduce: str, **options: Any) -> Any:
        lengths = torch.tensor([[0, 2, 3], [1, 0, 4]])
        return lambda x: torch.segment_reduce(x, reduce, lengths=lengths, axis=1, **options)

    offsets = torch.tensor([0, 1, 1, 2])
    kinds = ("sum", "mean", "prod", "max", "min")
    module = many(
        *(reduced(kind) for kind in kinds),
        *(reduced(kind, initial=2.0, unsafe=True) for kind in kinds),
        lambda x: torch.segment_reduce(x, "max", offsets=offsets),
        lambda x: torch.segment_reduce(x[0], "sum", lengths=torch.tensor([1, 2]), unsafe=True),
    )
    agree(module, (values(torch.float64, 2, 5, 3),), tmp_path)


def test_places_of_tensors_without_dimensions_or_elements(tmp_path: Path) -> None:
    module = many(
        lambda x, i: x[0].gather(0, i[:1]),
        lambda x, i: x.gather(0, i.view(1, -1)[:0]),
        lambda x, i: x[0].index_select(0, i[:1]),
        lambda x, i: x[0].unfold(0, 1, 1),
        lambda x, i: torch.embedding_renorm_(x.view(4, 2) * 1, i % 4, 1.5, 2.0),
        lambda x, i: torch.embedding_renorm_(x.view(4, 2) * 1, i % 4, 1.5, 1.0),
    )
    agree(module, (values(torch.float64, 8), places(1, 3)), tmp_path)


MEMORIES: dict[str, tuple[Any, bool]] = {  # a tensor, and whether the file says how it lies
    "input": (lambda x: x, True),
    "view": (lambda x: x.permute(0, 2, 3, 1), True),
    "copy": (lambda x: x.clone(), True),
    "row-major copy": (lambda x: x.contiguous(), True),
    "of a row-major copy": (lambda x: x.contiguous().roll(1, 1) * 2, True),
    "roll": (lambda x: x.roll(1, 1), False),
    "flip": (lambda x: x.flip(1), False),
    "function": (lambda x: x.exp(), False),
    "view of a function": (lambda x: (x + 1).permute(0, 2, 3, 1), False),
    "copy of a function": (lambda x: x.roll(2, 0).clone(), False),
}


@pytest.mark.full(but=["roll", "view"])
@pytest.mark.parametrize("name", MEMORIES)
def test_strides_in_memory_whose_order_the_file_does_not_say_are_refused(
    name: str, tmp_path: Path
) -> None:
    """Eager mode keeps channels innermost where the export's shape functions say row-major."""
    make, is_known = MEMORIES[name]
    x = values(torch.float64, 2, 3, 4, 5).to(memory_format=torch.channels_last)
    module = many(lambda x: make(x).as_strided((4, 5), (7, 2), 3))
    if is_known:
        agree(module, (x,), tmp_path)
        return
    program, graph = export(module, (x,), tmp_path)
    with pytest.raises(UnsupportedOpError, match=r"aten\.as_strided\.default"):
        run(graph, inputs_of(program, graph, (x,)), {})
    (reason,) = (op.reason for op in lower(graph).operations if isinstance(op, Extern))
    view = "a strided view of memory whose order the file does not define"
    assert reason == f"{view} is not supported"
