"""Attention as CuteDSL kernels: problems of every form with the configurations that are tried on
them, and what each should give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.template import Config
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import Lowered
from scheduler.lowering.interpret import interpret
from tests.support.memory import from_device, to_device
from tests.unit.codegen.cutedsl import cutedsl_attention
from tests.unit.codegen.test_attention_kernels import S
from tests.unit.codegen.test_attention_masks import WINDOWS

Array = npt.NDArray[Any]
F16, BF16, F32, BOOL = DType.F16, DType.BF16, DType.F32, DType.BOOL
LONG = SymbolInfo("s27", 40, 1, None)


def config(
    block_m: int, block_n: int, *, stages: int = 2, pingpong: bool = False, splits: int = 1
) -> Config:
    """One of ``attention_config.configs``."""
    return {
        "block_m": block_m,
        "block_n": block_n,
        "stages": stages,
        "pingpong": pingpong,
        "splits": splits,
    }


SMALL, LARGE = config(64, 64), config(128, 128, pingpong=True)
THREE, NINE = config(192, 64, pingpong=True), config(128, 64, stages=3)
FOUR, SIXTEEN = config(64, 64, splits=4), config(64, 128, splits=16)


@dataclass(frozen=True)
class Problem:
    """Rows, columns (S: symbolic), depths; the rest as ``attention_node`` names it."""

    dtype: DType
    sizes: tuple[object, object, int, int]
    options: Mapping[str, Any]
    config: Config
    lengths: tuple[int, ...] = field(default=(1, 40, 129, 300))

    def made(self) -> tuple[TemplateCaller, Lowered]:
        """The kernel, and the problem that it computes."""
        template = cutedsl_attention(self.dtype, *self.sizes, **self.options)
        rejected = template.reject(self.config)
        assert rejected is None, rejected
        return template.generate(self.config), template.lowered

    def inputs(self, length: int, rng: np.random.Generator) -> dict[str, Array]:
        """Normal values; masks leave half of the columns out, and every one of some row."""
        found: dict[str, Array] = {}
        for name, buffer in self.made()[1].buffers.items():
            size = tuple(evaluate(extent, {"s27": length}) for extent in buffer.size)
            if name == "o":
                continue
            if buffer.dtype is BOOL:
                found[name] = rng.random(size) > 0.5
                found[name][:, size[1] // 2] = False
                continue
            values = rng.standard_normal(size)
            if name == "m":
                values[values > 1] = -np.inf
                if not self.options.get("safe", True):
                    # All of a row is hidden; lowering bounds f32's least number so.
                    least = float(np.finfo(np.float32).min) / 256
                    values[:, size[1] // 2] = -np.inf if buffer.dtype is F16 else least
            found[name] = from_device(to_device(values, buffer.dtype), buffer.dtype)
        return found

    def expected(self, inputs: Mapping[str, Array], length: int) -> Array:
        """In float64, by the operation's meaning; computed keys are rounded as they are stored."""
        lowered = self.made()[1]
        (operation,) = lowered.operations
        return interpret(operation, inputs, lowered, {"s27": length})["o"]


def _within(name: str, **options: Any) -> dict[str, Any]:
    """Rows see what a window of ``test_attention_masks`` says."""
    return {"plain": True, "window": WINDOWS[name][0], **options}


def _plain(**options: Any) -> dict[str, Any]:
    return {"plain": True, **options}


PROBLEMS: dict[str, Problem] = {
    "causal, grouped queries": Problem(
        F16, (S, 512, 64, 64), _plain(causal=True, key_heads=2), LARGE
    ),
    "one warpgroup": Problem(F16, (S, 512, 64, 64), _plain(causal=True, key_heads=2), SMALL),
    "three in turns": Problem(
        BF16, (S, S, 128, 128), _plain(causal=True, key_heads=1), THREE, (1, 64, 129, 500)
    ),
    "two, together": Problem(BF16, (S, S, 96, 96), _plain(), NINE),
    "unknown keys": Problem(BF16, (77, S, 128, 128), _plain(), SMALL, (1, 2, 130, 300)),
    "boolean mask": Problem(BF16, (S, 130, 96, 96), {"mask": BOOL}, LARGE),
    "odd boolean mask": Problem(F16, (S, 131, 64, 64), {"mask": BOOL}, SMALL),
    "additive mask, causal": Problem(F16, (S, 131, 64, 64), {"mask": F16, "causal": True}, THREE),
    "mask in f32": Problem(F16, (S, 132, 64, 64), _plain(mask=F32), NINE),
    "computed keys": Problem(
        BF16, (S, S, 128, 128), {"computed": True, "causal": True, "key_heads": 2}, LARGE
    ),
    "rows that are not aligned": Problem(F16, (S, S, 100, 36), _plain(key_heads=2), SMALL),
    "small depths": Problem(F16, (S, 70, 8, 24), _plain(), SMALL),
    "odd depth of values": Problem(F16, (S, 70, 40, 5), {}, SMALL),
    "deep": Problem(BF16, (S, 200, 256, 256), _plain(causal=True), config(128, 64, pingpong=True)),
    "offsets of 64 bits": Problem(
        F16, (S, S, 72, 40), {"mask": F16, "computed": True, "info": LONG}, SMALL
    ),
    "64 bits, three in turns": Problem(
        BF16, (S, S, 64, 64), _plain(causal=True, info=LONG), config(192, 128, pingpong=True)
    ),
    "negative scale": Problem(F16, (S, 70, 64, 64), _plain(scale=-0.2), SMALL),
    "one query": Problem(BF16, (1, S, 128, 128), _plain(key_heads=2), SIXTEEN, (1, 40, 129, 2000)),
    "split, masked, causal": Problem(
        F16, (S, S, 64, 5), {"mask": F16, "causal": True, "key_heads": 2}, FOUR
    ),
    "split, boolean mask": Problem(F16, (3, S, 64, 64), {"mask": BOOL}, FOUR),
    "window": Problem(BF16, (S, S, 128, 128), _within("causal, of 20"), LARGE, (1, 64, 129, 500)),
    "window of both sides, three in turns": Problem(
        F16, (S, S, 64, 64), _within("both sides", key_heads=2), THREE, (1, 64, 129, 700)
    ),
    "rows count down": Problem(F16, (S, 131, 64, 64), _within("rows count down"), SMALL),
    "windows end before the last rows": Problem(
        BF16, (S, 200, 128, 128), _within("nothing for the last rows"), LARGE
    ),
    "window, boolean mask": Problem(F16, (S, 300, 64, 64), _within("both sides", mask=BOOL), LARGE),
    "split window": Problem(F16, (S, S, 64, 64), _within("both sides"), FOUR, (1, 40, 129, 700)),
    "capped, causal": Problem(
        BF16, (S, S, 128, 128), _plain(causal=True, key_heads=2, cap=2.0), LARGE
    ),
    "capped, deep, as Gemma 2": Problem(
        BF16,
        (S, S, 256, 256),
        _within("causal, of 20", key_heads=2, cap=50.0),
        config(128, 64, pingpong=True),
    ),
    "capped, additive mask": Problem(
        F16, (S, 131, 64, 64), {"mask": F16, "cap": 3.0, "safe": False}, THREE
    ),
    "capped, negative scale, boolean mask": Problem(
        F16, (S, 130, 64, 64), {"mask": BOOL, "cap": 1.0, "scale": -0.2, "safe": False}, LARGE
    ),
    "capped, mask by f32's least number": Problem(
        BF16, (S, 132, 128, 128), {"mask": F32, "cap": 30.0, "safe": False}, LARGE
    ),
    "mask by f32's least number, split": Problem(
        F16, (S, S, 64, 64), {"mask": F32, "safe": False}, FOUR
    ),
    "capped far off": Problem(F16, (S, 70, 64, 64), _plain(cap=3000.0), SMALL),
    "capped, split": Problem(
        BF16, (1, S, 128, 128), _plain(key_heads=2, cap=30.0), SIXTEEN, (1, 40, 129, 2000)
    ),
    "NaN for rows without columns": Problem(
        F16, (3, S, 64, 64), {"mask": BOOL, "safe": False}, FOUR
    ),
    "split, 64 bits": Problem(
        F16, (S, S, 72, 40), {"mask": F16, "computed": True, "info": LONG}, FOUR
    ),
}
"""By what is particular about them."""
