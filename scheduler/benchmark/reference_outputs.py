"""The reference's outputs of a graph, for comparison with other outputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduler import reference
from scheduler.benchmark.gate import compare_output
from scheduler.benchmark.measurement import Check
from scheduler.benchmark.rounding_sensitivity import rounding_bounds
from scheduler.benchmark.tolerance import Tolerance
from scheduler.ir.bindings import Bindings
from scheduler.ir.graph import Graph
from scheduler.ir.rounding_noise import RoundingNoise
from scheduler.ir.storage import Array


class ReferenceOutputs:
    """The reference's outputs by name (``values``); ``missing`` gives the reason for the others.
    Raises the errors of ``reference.run``."""

    def __init__(
        self,
        graph: Graph,
        inputs: Mapping[str, Array],
        bindings: Bindings,
        tolerance: Tolerance,
        seed: int,
    ) -> None:
        self._graph, self._inputs, self._bindings = graph, inputs, bindings
        self._tolerance, self._seed = tolerance, seed
        self._rounding_bounds: Mapping[str, Array] | None = None
        self.missing: dict[str, str] = {}
        self.values = self._run(self.missing)

    def check(self, value: str, got: Array, name: str) -> Check:
        """Compare an output; if it fails, compare again with bounds that include roundings."""
        meta = self._graph.tensors.get(value)
        dtype = meta.dtype if meta else None
        expected = self.values[value]
        result = compare_output(got, expected, self._tolerance, name, dtype=dtype)
        if result.passed:
            return result
        if self._rounding_bounds is None:
            rng = np.random.default_rng([self._seed, 1])
            dtypes = {name: meta.dtype for name, meta in self._graph.tensors.items()}
            self._rounding_bounds = rounding_bounds(
                lambda: self._run({}, RoundingNoise(rng)), self.values, dtypes
            )
        carried = self._rounding_bounds.get(value)
        return compare_output(got, expected, self._tolerance, name, carried, dtype=dtype)

    def _run(
        self, missing: dict[str, str], roundings: RoundingNoise | None = None
    ) -> dict[str, Array]:
        """Return the outputs; a number among them (a size) is an array without dimensions, as a
        kernel stores it."""
        outputs = reference.run(
            self._graph, self._inputs, self._bindings, missing=missing, roundings=roundings
        )
        return {name: np.asarray(value) for name, value in outputs.items()}
