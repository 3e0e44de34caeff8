"""Matrix products as CuteDSL kernels: problems of every layout with the configurations that are
tried on them, and what each should give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.cutedsl.convolution import ConvolutionTemplate
from scheduler.codegen.cutedsl.gemm.template import GemmTemplate
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import as_expr, evaluate, symbol
from scheduler.ir.operations import BufferKind, GroupKind
from scheduler.lowering.interpret import interpret
from scheduler.targets import find
from tests.support.memory import from_device, to_device
from tests.unit.matrix import contractions

Array = npt.NDArray[Any]
F16, BF16 = DType.F16, DType.BF16
_COLUMNS = {"s1": SymbolInfo("s1", 256, 1, 4096)}
_ROWS_OF_64: dict[str, int | str] = {
    **{"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "STAGES": 4, "CONSUMERS": 1},
    **{"CLUSTER_M": 1, "CLUSTER_N": 1, "SPLIT_K": 1},
}
_ROWS = {"s0": SymbolInfo("s0", 96, 1, 4096)}


@dataclass(frozen=True)
class Product:
    """A problem, the configuration where it differs from the default, and the symbols' sizes."""

    problem: Callable[[], Schedule]
    config: Mapping[str, int | str] = field(default_factory=dict)
    bindings: Mapping[str, int] = field(default_factory=dict)

    def caller(self) -> TemplateCaller:
        schedule = self.problem()
        (node,) = schedule.nodes
        of_kind = GemmTemplate if node.kind is GroupKind.GEMM else ConvolutionTemplate
        template = of_kind(node, schedule.lowered, (find("sm_90"),))
        config = {**template.default_config(), **self.config}
        rejected = template.reject(config)
        assert rejected is None, rejected
        return template.generate(config)

    def inputs(self, rng: np.random.Generator) -> dict[str, Array]:
        """Normal values that the types can hold, and positions inside the axes that they name."""
        found: dict[str, Array] = {}
        for name, buffer in self.problem().lowered.buffers.items():
            if buffer.kind is not BufferKind.INPUT:
                continue
            size = tuple(evaluate(extent, self.bindings) for extent in buffer.size)
            if buffer.dtype is DType.I64:
                found[name] = rng.integers(0, 9, size)
            else:
                values = rng.standard_normal(size)
                found[name] = from_device(to_device(values, buffer.dtype), buffer.dtype)
        return found

    def expected(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """In float64, by the operations' meaning."""
        lowered, made = self.problem().lowered, dict[str, Array]()
        for operation in lowered.operations:
            made |= interpret(operation, inputs, lowered, self.bindings)
        return made


def _large(**config: int | str) -> Product:
    return Product(
        lambda: contractions.matmul(520, 776, 512, BF16, b_transposed=True, bias=(776,), relu=True),
        config,
    )


def _windows(**layout: int | bool) -> Product:
    return Product(
        lambda: contractions.convolution(
            (2, 16, 9, 11),
            (24, 16, 3, 3),
            F16,
            bias=True,
            **layout,  # type: ignore[arg-type]
        )
    )


def _packed_weights() -> Schedule:
    """Images with channels last, weights as torch has them: channels first."""
    made = contractions.convolution(
        (2, 64, 9, 11), (72, 64, 3, 3), BF16, padding=1, channels_last=True
    )
    weight = made.lowered.buffers["w"]
    as_torch = replace(weight, stride=tuple(map(as_expr, (576, 9, 3, 1))))
    buffers = {**made.lowered.buffers, "w": as_torch}
    return replace(made, lowered=replace(made.lowered, buffers=buffers))


def _images(
    size: tuple[int, ...], weight: tuple[int, ...], **layout: int | bool
) -> Callable[[], Schedule]:
    return lambda: contractions.convolution(
        size,
        weight,
        BF16,
        bias=True,
        **{"channels_last": True, **layout},  # type: ignore[arg-type]
    )


_TWO = {"CONSUMERS": 2, "BLOCK_K": 64, "CLUSTER_M": 1, "CLUSTER_N": 1}

PRODUCTS: dict[str, Product] = {
    "rows and columns contiguous": Product(lambda: contractions.matmul(100, 104, 72, F16)),
    "both along k": Product(lambda: contractions.matmul(70, 96, 88, BF16, b_transposed=True)),
    "A along m": Product(lambda: contractions.matmul(264, 96, 80, F16, a_stride=(1, 264))),
    "neither along k": Product(lambda: contractions.matmul(264, 96, 33, BF16, a_stride=(1, 264))),
    "odd columns": Product(lambda: contractions.matmul(40, 101, 64, F16, b_transposed=True)),
    "two columns at a time": Product(
        lambda: contractions.matmul(40, 102, 64, BF16, b_transposed=True)
    ),
    "odd columns of several tiles": Product(
        lambda: contractions.matmul(20, 165, 64, F16, bias=(165,), relu=True), _ROWS_OF_64
    ),
    "odd columns in batches": Product(
        lambda: contractions.matmul(33, 67, 64, BF16, batch=2, bias=(33, 67)), _ROWS_OF_64
    ),
    "columns known at run time, odd": Product(
        lambda: contractions.matmul(9, symbol("s1"), 64, F16, b_transposed=True, symbols=_COLUMNS),
        _ROWS_OF_64,
        {"s1": 75},
    ),
    "columns known at run time, even": Product(
        lambda: contractions.matmul(9, symbol("s1"), 64, F16, b_transposed=True, symbols=_COLUMNS),
        _ROWS_OF_64,
        {"s1": 136},
    ),
    "three with odd columns": Product(
        lambda: contractions.shared_input(24, [69, 74, 41], 64, F16), _ROWS_OF_64
    ),
    "odd columns, pingpong": Product(
        lambda: contractions.matmul(520, 777, 512, BF16, b_transposed=True, bias=(777,)),
        {**_TWO, "CLUSTER_M": 2, "BLOCK_N": 128, "STAGES": 6, "schedule": "pingpong"},
    ),
    "odd columns, 128x256": Product(
        lambda: contractions.matmul(520, 777, 512, F16, b_transposed=True, bias=(777,)),
        {**_TWO, "BLOCK_M": 128, "BLOCK_N": 256, "STAGES": 4},
    ),
    "rows that are not aligned": Product(lambda: contractions.matmul(100, 102, 33, BF16)),
    "bias of a row": Product(lambda: contractions.matmul(40, 80, 48, F16, bias=(40, 1), relu=True)),
    "a whole bias": Product(lambda: contractions.matmul(40, 80, 48, F16, bias=(40, 80))),
    "batches": Product(lambda: contractions.matmul(96, 136, 72, F16, batch=3)),
    "batches of heads": Product(lambda: contractions.scores(2, 3, 2, 70, 40, 64, BF16)),
    "symbolic rows": Product(
        lambda: contractions.scores(2, 3, 2, symbol("s0"), symbol("s0"), 64, F16, symbols=_ROWS),
        bindings={"s0": 77},
    ),
    "three of one input": Product(
        lambda: contractions.shared_input(200, [256, 128, 136], 320, BF16)
    ),
    "heads side by side": Product(lambda: contractions.split_heads(2, 33, 3, 40, F16)),
    "computed and gathered": Product(lambda: contractions.gathered_gelu(130, 96, 72, 9, BF16)),
    "rows before others": Product(lambda: contractions.rows_before(20, 24, 3, 9, F16)),
    "epilogue apart": Product(
        lambda: contractions.gathered_gelu(128, 96, 72, 9, F16), {"epilogue": "separate"}
    ),
    "windows, channels last": _windows(channels_last=True, padding=1),
    "windows, channels first": _windows(padding=1, stride=2),
    "pixels": Product(
        lambda: contractions.convolution((1, 16, 5, 6), (24, 16, 1, 1), BF16, channels_last=True)
    ),
    "windows in groups": Product(
        lambda: contractions.convolution(
            (1, 32, 5, 4), (32, 16, 3, 3), F16, padding=1, groups=2, channels_last=True, bias=True
        )
    ),
    "windows from where they lie": Product(_images((2, 64, 9, 11), (72, 64, 3, 3), padding=1)),
    "windows, two apart": Product(_images((3, 128, 10, 13), (40, 128, 3, 3), padding=1, stride=2)),
    "windows, dilated": Product(_images((2, 64, 12, 9), (48, 64, 3, 3), padding=2, dilation=2)),
    "windows inside": Product(_images((3, 64, 7, 8), (32, 64, 2, 4))),
    "windows of weights that are packed": Product(_packed_weights),
    "windows, split": Product(
        _images((2, 64, 9, 11), (72, 64, 3, 3), padding=1),
        {"SPLIT_K": 4, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "STAGES": 4, "CONSUMERS": 1},
    ),
    "windows, pairs along n": Product(
        _images((4, 64, 12, 12), (520, 64, 3, 3), padding=1),
        {**_TWO, "CLUSTER_N": 2, "BLOCK_M": 128, "BLOCK_N": 256, "STAGES": 3},
    ),
    "windows, pairs along m": Product(
        _images((4, 64, 12, 12), (264, 64, 3, 3), padding=1),
        {**_TWO, "CLUSTER_M": 2, "BLOCK_M": 128, "BLOCK_N": 256, "STAGES": 4},
    ),
    "heads as windows": Product(lambda: contractions.split_heads(2, 33, 3, 64, F16)),
    "no k": Product(lambda: contractions.matmul(8, 16, 0, F16, bias=(16,), relu=True)),
    "one of three without columns": Product(
        lambda: contractions.shared_input(24, [0, 16, 0], 64, F16), _ROWS_OF_64
    ),
    "packed, one of three without columns": Product(
        lambda: contractions.shared_input(3, [7, 0, 16], 7, F16)
    ),
    "no rows": Product(lambda: contractions.matmul(0, 16, 8, F16)),
    "split in two": _large(SPLIT_K=2),
    "split in four": _large(SPLIT_K=4, BLOCK_M=64, BLOCK_N=128, BLOCK_K=64, STAGES=8, CONSUMERS=1),
    "three, split": Product(
        lambda: contractions.shared_input(24, [32, 37, 40], 1032, F16), {"SPLIT_K": 2}
    ),
    "128x256": _large(**_TWO, BLOCK_M=128, BLOCK_N=256, STAGES=4),
    "128x256, pairs along m": _large(
        **{**_TWO, "CLUSTER_M": 2}, BLOCK_M=128, BLOCK_N=256, STAGES=4
    ),
    "128x256, pairs along n": _large(
        **{**_TWO, "CLUSTER_N": 2}, BLOCK_M=128, BLOCK_N=256, STAGES=3
    ),
    "256x128": _large(**{**_TWO, "CLUSTER_N": 2}, BLOCK_M=256, BLOCK_N=128, STAGES=4),
    "128x192": _large(**_TWO, BLOCK_M=128, BLOCK_N=192, STAGES=5),
    "128x64": _large(**_TWO, BLOCK_M=128, BLOCK_N=64, STAGES=6),
    "128x128, pingpong": _large(
        **{**_TWO, "CLUSTER_M": 2}, BLOCK_M=128, BLOCK_N=128, STAGES=6, schedule="pingpong"
    ),
    "64x256, pingpong": _large(**_TWO, BLOCK_M=64, BLOCK_N=256, STAGES=5, schedule="pingpong"),
    "64x128, one consumer": _large(
        BLOCK_M=64, BLOCK_N=128, BLOCK_K=128, STAGES=4, CONSUMERS=1, CLUSTER_M=1, CLUSTER_N=2
    ),
    "64x32, one consumer": _large(
        BLOCK_M=64, BLOCK_N=32, BLOCK_K=128, STAGES=8, CONSUMERS=1, CLUSTER_M=1, CLUSTER_N=1
    ),
}
"""By what is particular about them."""
