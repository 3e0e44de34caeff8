"""torch's OpInfo database: its ops, the types of elements they admit, their sample inputs."""

from __future__ import annotations

import importlib.util
import random
import sys
import types
import unittest
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch.utils import _pytree as pytree

from scheduler.ir.dtypes import DType

#: Torch's types that the engine has, by the engine's short names.
DTYPES = {d.label: getattr(torch, d.torch.removeprefix("torch.")) for d in DType}
LABELS = {dtype: label for label, dtype in DTYPES.items()}

# ``SEED`` in torch.testing._internal.common_utils.
_SEED_OF_SAMPLES = 1234

# What is compared of results: tensors, and numbers, which are symbols while torch exports.
_RESULTS = (torch.Tensor, int, float, complex, torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclass(frozen=True)
class Use:
    """One sample of an op: which one, the tensors that it is called with, and the call itself."""

    op: str
    dtype: str
    index: int
    tensors: tuple[Any, ...]
    function: Any
    spec: Any
    leaves: tuple[Any, ...]

    @property
    def name(self) -> str:
        """As reports have it: ``add f32 #3``."""
        return f"{self.op} {self.dtype} #{self.index}"

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        """The results with these tensors in place of the sample's own: tensors and numbers."""
        given = iter(tensors)
        leaves = [next(given) if isinstance(x, torch.Tensor) else x for x in self.leaves]
        sample, args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        made = self.function(sample, *args, **kwargs)
        flat = pytree.tree_leaves(made)
        return [x for x in flat if isinstance(x, _RESULTS)]


@cache
def database() -> dict[str, Any]:
    """Every op by its name with its variant (``sum``, ``std.unbiased``), in the database's order.

    The module asks for ``expecttest``, which only tests of torch's own need.
    """
    if importlib.util.find_spec("expecttest") is None:
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.full_name if hasattr(op, "full_name") else _name(op): op for op in op_db}


def _name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def dtypes_of(op: str) -> list[str]:
    """The types that torch's CPU takes for the op and the engine has, in the engine's order."""
    supported = database()[op].supported_dtypes("cpu")
    return [label for label, dtype in DTYPES.items() if dtype in supported]


def uses(op: str, dtype: str) -> Iterator[Use]:
    """The op's sample inputs in that type: the same ones at every call."""
    info = database()[op]
    _seed(crc32(f"{op} {dtype}".encode()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for index, sample in enumerate(_samples(info, DTYPES[dtype])):
            leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
            tensors = tuple(x for x in leaves if isinstance(x, torch.Tensor))
            yield Use(op, dtype, index, tensors, info.op, spec, tuple(leaves))


def _samples(info: Any, dtype: torch.dtype) -> Iterator[Any]:
    """What ``info.sample_inputs`` gives: each drawn after the same seed. That one looks through
    the whole stack for a test of torch's own, and prints it for each kind of device: most of the
    time, under pytest."""
    samples = info.sample_inputs_func(info, "cpu", dtype, False)
    _seed(_SEED_OF_SAMPLES)
    for sample in samples:
        yield sample
        _seed(_SEED_OF_SAMPLES)


def _seed(seed: int) -> None:
    """Of all that samples for a CPU are drawn from."""
    torch.default_generator.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def spread(count: int, wanted: int | None) -> list[int]:
    """Which of so many samples to take: all, or so many from first to last."""
    if wanted is None or count <= wanted:
        return list(range(count))
    if wanted == 1:
        return [0]
    return sorted({round(i * (count - 1) / (wanted - 1)) for i in range(wanted)})


def widened(tensor: Any) -> Any:
    """The tensor in float64 or complex128; integers and booleans as they are."""
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.to(torch.float64) if tensor.dtype.is_floating_point else tensor


def as_array(value: Any) -> Any:
    """A tensor or number as the reference holds it."""
    if not isinstance(value, torch.Tensor):
        return value
    wide = widened(value.detach().resolve_conj().resolve_neg())
    return np.array(wide.numpy())


def parts_of(value: Any) -> Any:
    """A tensor, array or number in NumPy's reals: complex numbers as pairs along a last axis,
    floats in float64."""
    array = np.asarray(as_array(value))
    if np.iscomplexobj(array):
        array = np.stack([array.real, array.imag], -1)
    return array.astype(np.float64) if array.dtype.kind == "f" else array
