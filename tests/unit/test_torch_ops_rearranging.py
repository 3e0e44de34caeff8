"""Diagonals, turned, shuffled and joined tensors, their pieces, and second names, against torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
F = torch.nn.functional


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_diagonals_and_turns(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any, i: Any) -> Any:
        v = x[0, 0]
        return (
            *(torch.rot90(x, k, (0, 2)) for k in (-1, 0, 1, 2, 3)),
            torch.rot90(x[0], 5, [-1, -2]),
            *(torch.fliplr(x), torch.flipud(x), torch.diag(v), torch.diag(v, -2), torch.diag(v, 1)),
            *(torch.diag(x[0]), torch.diag(x[0], 1), torch.diagflat(x[:, :2, 0], -1)),
            *(torch.diag_embed(x), torch.diag_embed(x, 2, 0, 2), torch.diag_embed(x, -1, -1, 0)),
            torch.diag_embed(i[0]),
            *(torch.trace(x[0]), torch.trace(i), torch.trace(x[:, :0, 0])),
            *(torch.linalg.diagonal(x), torch.diagonal_copy(x, 1, 2, 0)),
            *(torch.vander(v), torch.vander(i[0], 3, increasing=True), torch.vander(v, 2)),
            *(torch.matrix_power(x[:, :, :4], n) for n in (0, 1, 2, 5)),
            torch.linalg.matrix_power(i[:3, :3], 3),
        )

    i = torch.arange(15).reshape(3, 5)
    agree(as_module(every), (_randn(3, 4, 5), i), tmp_path, decompose=decompose)


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_pieces_and_joins(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any, i: Any) -> Any:
        v, s = x[0, 0], x[0, 0, 0]
        return (
            *torch.tensor_split(x, 3, dim=-1),
            *torch.tensor_split(x, (1, 1, 9), dim=1),
            *torch.tensor_split(x, (-2,), dim=2),
            *(*torch.hsplit(x, 2), *torch.hsplit(v, (2,)), *torch.vsplit(x, (1,))),
            *(*torch.dsplit(x, (2, 4)), *torch.unsafe_chunk(x, 2, 1), *torch.unsafe_split(x, 2, 2)),
            *(
                torch.hstack((s, v)),
                torch.hstack((x, x)),
                torch.vstack((v, x[0])),
                torch.vstack((s,)),
            ),
            *(torch.dstack((v, v)), torch.dstack((x[0], x[1])), torch.row_stack((v, v))),
            *(
                torch.column_stack((v, x[0].t())),
                torch.column_stack((s, s)),
                torch.concatenate((x, x), 1),
            ),
            *(torch.atleast_1d(s), torch.atleast_2d(s), torch.atleast_2d(v), torch.atleast_3d(s)),
            *(torch.atleast_3d(v), torch.atleast_3d(x[0]), *torch.atleast_3d(v, x, i)),
            *(torch.block_diag(x[0], v, s, x[1]), torch.block_diag(x[0, :0], v)),
            *(torch.cartesian_prod(v), torch.cartesian_prod(v, x[0, :, 0], v[:2])),
            *(torch.take(x, i), torch.take(x, i[0] - 7), x.ravel(), x.mT.ravel(), s.ravel()),
            *(
                x.sum_to_size(4, 5),
                x.sum_to_size(3, 1, 5),
                x.sum_to_size(1),
                x.sum_to_size(3, 4, 5),
            ),
        )

    i = torch.arange(15).reshape(3, 5)
    agree(as_module(every), (_randn(3, 4, 5), i), tmp_path, decompose=decompose)


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_shuffles_and_second_names(tmp_path: Path, decompose: bool) -> None:
    aten = torch.ops.aten

    def every(x: Any) -> Any:
        p = x[0, 0]
        return (
            *(F.pixel_unshuffle(x, 2), F.pixel_unshuffle(x[0], 1), F.channel_shuffle(x, 3)),
            *(torch.native_channel_shuffle(x, 2), aten.view_copy(x, (6, 32)), aten.t_copy(p)),
            *(aten.expand_copy(x[:, :1], (2, 6, 4, 4)), aten.permute_copy(x, (3, 0, 2, 1))),
            *(aten.squeeze_copy(x[:1]), aten.squeeze_copy(x[:1], 0), aten.unsqueeze_copy(x, -1)),
            *(
                aten.transpose_copy(x, 0, 1),
                aten.select_copy(x, 1, -1),
                aten.slice_copy(x, 1, 1, 5, 2),
            ),
            *(*aten.split_copy(x, 4, 1), *aten.unbind_copy(p), aten.unfold_copy(x, 1, 2, 3)),
            *(aten.alias_copy(x), aten.detach_copy(x), *aten.split_with_sizes_copy(x, (1, 5), 1)),
            *(torch.absolute(x), torch.arcsinh(x), torch.arctan2(x, x + 1), torch.fix(x)),
            *(torch.negative(x), torch.multiply(x, 2), torch.subtract(x, x, alpha=3)),
            *(
                torch.divide(x, 3, rounding_mode="floor"),
                torch.greater(x, 0),
                torch.not_equal(x, x),
            ),
            *(torch.special.expit(x), torch.special.logsumexp(x, 1), torch.ger(p[0], p[1])),
            *(torch.moveaxis(x, 1, 2), torch.swapdims(x, 0, -1), torch.special.round(x)),
        )

    agree(as_module(every), (_randn(2, 6, 4, 4),), tmp_path, decompose=decompose)


def test_writes_to_pieces_are_seen(tmp_path: Path) -> None:
    """A view of a name that came late shares memory with what it shows; a copy does not."""

    def every(x: Any) -> Any:
        y = x.clone()
        torch.tensor_split(y, 2, dim=1)[1].add_(1)
        torch.swapdims(y, 0, 1).select(0, 0).mul_(2)
        copy = torch.ops.aten.select_copy(y, 0, 0)
        copy.add_(5)
        torch.linalg.diagonal(y).zero_()
        return y, copy

    agree(as_module(every), (_randn(3, 4),), tmp_path)
