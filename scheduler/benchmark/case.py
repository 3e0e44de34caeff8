"""One problem to check and time candidates on: concrete buffers, inputs, and expected outputs.

A case is stored in a folder (``case.json`` and ``arrays.npz``), so that a worker process can open
it without computing anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from scheduler.benchmark.tolerance import Tolerance
from scheduler.ir.codec import decode, default_codec
from scheduler.ir.storage import Array, BoundBuffer


@dataclass(frozen=True)
class _CaseHeader:
    """The parts of a case that are not arrays."""

    buffers: tuple[BoundBuffer, ...]
    tolerances: Mapping[str, Tolerance]
    bindings: Mapping[str, int]
    along: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """Buffers of one kernel call at one binding.

    ``inputs`` maps a buffer to its storage (1-D, host type of the dtype, strides applied by the
    reader); ``expected`` maps an output to the float64 (or integer) reference in its logical
    shape, with its tolerance in ``tolerances``. ``carried`` is the additional error that each
    element of an output may have (float32, same shape) from the roundings of a correct kernel.

    For an output of indices that sort computed keys, ``keys`` holds the keys with the sorted
    dimension last, and ``along`` is the number of that dimension in the output. If two keys are
    within the output's tolerance (which is that of the keys), either may come first.
    """

    buffers: Mapping[str, BoundBuffer]
    inputs: Mapping[str, Array]
    expected: Mapping[str, Array]
    tolerances: Mapping[str, Tolerance]
    bindings: Mapping[str, int]
    carried: Mapping[str, Array] = field(default_factory=dict)
    keys: Mapping[str, Array] = field(default_factory=dict)
    along: Mapping[str, int] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write the case into an existing folder."""
        header = _CaseHeader(
            tuple(self.buffers.values()), self.tolerances, self.bindings, self.along
        )
        (folder / "case.json").write_text(json.dumps(default_codec().unstructure(header)))
        arrays = {f"in:{name}": array for name, array in self.inputs.items()}
        arrays |= {f"out:{name}": array for name, array in self.expected.items()}
        arrays |= {f"off:{name}": array for name, array in self.carried.items()}
        arrays |= {f"key:{name}": array for name, array in self.keys.items()}
        np.savez(folder / "arrays.npz", **arrays)  # type: ignore[arg-type]

    @staticmethod
    def load(folder: Path) -> Case:
        """Read a case that ``save`` wrote."""
        path = folder / "case.json"
        header = decode(default_codec(), json.loads(path.read_text()), _CaseHeader, str(path))
        buffers = {buffer.name: buffer for buffer in header.buffers}
        with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
            inputs = {key[3:]: arrays[key] for key in arrays.files if key.startswith("in:")}
            expected = {key[4:]: arrays[key] for key in arrays.files if key.startswith("out:")}
            carried = {key[4:]: arrays[key] for key in arrays.files if key.startswith("off:")}
            keys = {key[4:]: arrays[key] for key in arrays.files if key.startswith("key:")}
        return Case(
            buffers,
            inputs,
            expected,
            header.tolerances,
            header.bindings,
            carried,
            keys,
            header.along,
        )
