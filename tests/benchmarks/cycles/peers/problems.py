"""The problems that are held against Triton's kernels, each with a few sensible configurations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from scheduler.cycles.launches.parser import Buffer
from tests.benchmarks.cycles.peers.launches import Kernel, Peer, f16, f32
from tests.support.families import FAMILIES, INPUTS, KEYS, OUTPUTS, Family

_FAMILIES = {family.name: family for family in FAMILIES}


@dataclass(frozen=True)
class Problem:
    """``bar``: the least that Kiln's modelled rate may be of Triton's; None where none was set.
    ``peers`` for waves of so many lanes."""

    family: Family
    bar: float | None
    peers: Callable[[int], Iterator[Peer]]

    @property
    def name(self) -> str:
        return self.family.name


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)


def _gemm(m: int, n: int, k: int, *, transposed: bool, gelu: bool) -> Iterator[Peer]:
    tiles = (
        (256, 256, 64, 8, 2),
        (256, 128, 64, 8, 2),
        (128, 128, 64, 8, 2),
        (128, 128, 32, 4, 2),
        (128, 128, 64, 4, 2),
        (128, 64, 32, 4, 2),
    )
    for bm, bn, bk, warps, stages in tiles:
        constants = {
            "TRANSPOSED": transposed, "GELU": gelu, "BIAS": gelu, "MASKED": False,
            "BM": bm, "BN": bn, "BK": bk, "GROUP": 8, "SPLIT": 1,
        }  # fmt: skip
        one = _product(m, n, k, f16(m, n), constants, {"num_warps": warps, "num_stages": stages})
        yield Peer(f"{bm}x{bn}x{bk}, {warps} warps", (one,))


def _product(
    m: int,
    n: int,
    k: int,
    result: Buffer,
    constants: dict[str, int | bool],
    options: dict[str, int],
) -> Kernel:
    arguments: dict[str, Buffer | int | float] = {
        "a": f16(m, k), "b": f16(k, n), "bias": f16(n), "c": result, "m": m, "n": n, "k": k,
        "lda": k, "ldb": k if constants["TRANSPOSED"] else n, "ldc": n,
    }  # fmt: skip
    blocks = _cdiv(m, int(constants["BM"])) * _cdiv(n, int(constants["BN"]))
    grid = (blocks, int(constants["SPLIT"]), 1)
    return Kernel("gemm", "gemm", arguments, constants, grid, options)


def _skinny(m: int, n: int, k: int) -> Iterator[Peer]:
    """A few rows: tiles of 16 rows or more, k in parts that a second kernel adds; of one row also
    a kernel without matrix instructions."""
    if m == 1:
        for bn, bk, warps in ((16, 512, 4), (8, 1024, 4), (4, 1024, 4)):
            arguments: dict[str, Buffer | int | float] = {
                "a": f16(k), "b": f16(n, k), "bias": f16(n), "c": f16(n), "n": n, "k": k, "ldb": k
            }  # fmt: skip
            constants = {"BN": bn, "BK": bk}
            one = Kernel("gemm", "row", arguments, constants, (n // bn, 1, 1), {"num_warps": warps})
            yield Peer(f"one row, {bn}x{bk}", (one,))
    rows = max(16, m)
    for bn, bk, warps, split in (
        (64, 128, 4, 1), (32, 256, 2, 1), (128, 64, 4, 4), (64, 128, 4, 4), (64, 256, 4, 2)
    ):  # fmt: skip
        whole = split == 1
        settings: dict[str, int | bool] = {
            "TRANSPOSED": True, "GELU": False, "BIAS": whole, "MASKED": m < rows,
            "BM": rows, "BN": bn, "BK": bk, "GROUP": 1, "SPLIT": split,
        }  # fmt: skip
        result = f16(m, n) if whole else f32(split, m, n)
        kernels = [
            _product(m, n, k, result, settings, {"num_warps": warps, "num_stages": 2}),
        ]
        if not whole:
            sums: dict[str, Buffer | int | float] = {
                "parts": result, "bias": f16(n), "c": f16(m, n), "n": n, "count": m * n
            }  # fmt: skip
            grid = (m * n // 1024, 1, 1)
            kernels.append(Kernel("gemm", "add_parts", sums, {"SPLIT": split, "B": 1024}, grid))
        yield Peer(f"{rows}x{bn}x{bk}, {warps} warps, split {split}", tuple(kernels))


def _causal(heads: int, length: int, depth: int) -> Iterator[Peer]:
    size = f16(heads, length, depth)
    for bm, bn, warps, stages in (
        (128, 64, 4, 1), (128, 64, 4, 2), (128, 128, 4, 1), (256, 64, 8, 2), (64, 32, 4, 1)
    ):  # fmt: skip
        arguments: dict[str, Buffer | int | float] = {
            "q": size, "k": size, "v": size, "o": size, "length": length,
            "sh": length * depth, "sr": depth, "scale": math.log2(math.e) / math.sqrt(depth),
        }  # fmt: skip
        constants = {"D": depth, "BM": bm, "BN": bn}
        options = {"num_warps": warps, "num_stages": stages, "waves_per_eu": 0}
        grid = (length // bm, heads, 1)
        one = Kernel("attention", "causal", arguments, constants, grid, options)
        yield Peer(f"{bm}x{bn}, {warps} warps, {stages} stages", (one,))


def _decode(heads: int, length: int, depth: int) -> Iterator[Peer]:
    for split, bn, warps in ((16, 64, 4), (32, 64, 4), (64, 32, 4), (64, 64, 4)):
        parts, one = f32(heads, split, depth), f32(heads, split)
        arguments: dict[str, Buffer | int | float] = {
            "q": f16(heads, depth), "k": f16(heads, length, depth), "v": f16(heads, length, depth),
            "parts": parts, "sums": one, "most": one, "length": length, "sh": length * depth,
            "scale": math.log2(math.e) / math.sqrt(depth),
        }  # fmt: skip
        options = {"num_warps": warps}
        constants = {"D": depth, "BN": bn, "SPLIT": split}
        grid = (heads, split, 1)
        first = Kernel("attention", "decode", arguments, constants, grid, options)
        last: dict[str, Buffer | int | float] = {
            "parts": parts, "sums": one, "most": one, "o": f16(heads, depth)
        }  # fmt: skip
        constants = {"D": depth, "SPLIT": split}
        second = Kernel("attention", "combine", last, constants, (heads, 1, 1), options)
        yield Peer(f"{split} parts, {bn} keys", (first, second))


def _convolution(images: int, side: int, channels: int, filters: int) -> Iterator[Peer]:
    pixels = images * side * side
    for bm, bn, bk, warps in (
        (128, 128, 64, 8), (128, 128, 32, 4), (128, 64, 64, 4), (64, 64, 64, 4), (64, 128, 64, 4)
    ):  # fmt: skip
        arguments: dict[str, Buffer | int | float] = {
            "x": f16(pixels, channels), "w": f16(filters, 9, channels), "y": f16(pixels, filters),
            "pixels": pixels, "height": side, "width": side, "channels": channels,
            "filters": filters,
        }  # fmt: skip
        constants = {"KH": 3, "KW": 3, "PAD": 1, "BM": bm, "BN": bn, "BK": bk, "GROUP": 4}
        grid = (_cdiv(pixels, bm) * _cdiv(filters, bn), 1, 1)
        options = {"num_warps": warps, "num_stages": 2}
        one = Kernel("convolution", "convolution", arguments, constants, grid, options)
        yield Peer(f"{bm}x{bn}x{bk}, {warps} warps", (one,))


def _rows(function: str, rows: int, columns: int) -> Iterator[Peer]:
    numbers: dict[str, int | float] = {"rows": rows, "columns": columns}
    if function == "layer_norm":
        numbers["eps"] = 1e-5
    for at_once, warps in ((1, 4), (1, 8), (2, 8), (4, 8)):
        arguments = {"x": f16(rows, columns), "y": f16(rows, columns), **numbers}
        constants = {"R": at_once, "B": columns}
        grid = (rows // at_once, 1, 1)
        one = Kernel("rows", function, arguments, constants, grid, {"num_warps": warps})
        yield Peer(f"{at_once} rows, {warps} warps", (one,))


def _gelu(count: int, *, whole: bool) -> Iterator[Peer]:
    for block, warps in ((1024, 4), (2048, 4), (4096, 8)):
        arguments: dict[str, Buffer | int | float] = {"x": f16(count), "y": f16(count), "n": count}
        constants = {"B": block, "WHOLE": whole}
        grid = (_cdiv(count, block), 1, 1)
        one = Kernel("rows", "gelu", arguments, constants, grid, {"num_warps": warps})
        yield Peer(f"{block} elements, {warps} warps", (one,))


PROBLEMS = (
    Problem(
        _FAMILIES["gemm + gelu"],
        0.95,
        lambda _: _gemm(4096, 4096, 4096, transposed=True, gelu=True),
    ),
    Problem(
        _FAMILIES["gemm, B row-major"],
        0.95,
        lambda _: _gemm(4096, 4096, 4096, transposed=False, gelu=False),
    ),
    Problem(_FAMILIES["gemm, 1 row"], 1.0, lambda _: _skinny(1, OUTPUTS, INPUTS)),
    Problem(_FAMILIES["gemm, 16 rows"], 1.0, lambda _: _skinny(16, OUTPUTS, INPUTS)),
    Problem(_FAMILIES["gemm, 64 rows"], 1.0, lambda _: _skinny(64, OUTPUTS, INPUTS)),
    Problem(_FAMILIES["attention, causal"], 1.0, lambda _: _causal(32, 4096, 128)),
    Problem(
        _FAMILIES[f"attention, one query, {KEYS} keys"],
        1.0,
        lambda _: _decode(32, KEYS, 128),
    ),
    Problem(_FAMILIES["convolution 3x3"], 1.0, lambda _: _convolution(32, 14, 256, 256)),
    Problem(_FAMILIES["softmax"], 1.0, lambda _: _rows("softmax", 4096, 4096)),
    Problem(_FAMILIES["layer norm"], None, lambda _: _rows("layer_norm", 4096, 4096)),
    Problem(_FAMILIES["gelu"], None, lambda _: _gelu(4096 * 4096, whole=True)),
    Problem(_FAMILIES["gelu, any size"], None, lambda _: _gelu(4096 * 4096, whole=False)),
)
"""In the order in which they are shown."""
