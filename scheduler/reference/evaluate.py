"""The float64 reference: one node, or a whole graph.

Tensors of any float type are float64, integers and booleans have their own type, symbolic integers
are ``int``. Values are not rounded between ops: a kernel's bound covers its own rounding, and
rounding here would add a second error. With ``round_casts`` the explicit conversions of a model
(``to.dtype`` and its family) round to a narrower float type, for models that depend on it.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Collection, Iterable, Mapping
from math import prod
from typing import Any, TypeAlias

import numpy as np
import sympy

from scheduler.errors import UserError
from scheduler.ir.bindings import backed_bindings, bind_unbacked
from scheduler.ir.check import last_uses, node_references
from scheduler.ir.dtypes import TF32_EPS, DType
from scheduler.ir.encoding import round_to_dtype
from scheduler.ir.graph import Argument, Graph, MatmulPrecision, Node, Ref, Subgraph, TensorMeta
from scheduler.ir.index.functions import evaluate as evaluate_expr
from scheduler.ir.index.functions import is_unbacked, unbacked_sizes
from scheduler.ir.ops import Elements, UnsupportedOpError
from scheduler.ir.random import (
    BLOCKS,
    DEFAULT_BLOCKS,
    PHILOX_RAND,
    SEED,
    may_draw_random,
    stream_id,
)
from scheduler.ir.reference.rule import (
    OWN_DTYPE,
    RANDOM,
    RUN,
    STRIDES,
    Array,
    UnsupportedUseError,
    compute_dtype,
)
from scheduler.ir.rounding_noise import (
    MATMUL_OPS,
    SCAN_OPS,
    RoundingNoise,
    is_arithmetic,
    scan_spread,
)
from scheduler.lowering.alias_analysis import (
    AliasTracker,
    knows_strides,
    memory_root,
    written_values,
)
from scheduler.lowering.errors import node_location
from scheduler.lowering.ops import lookup_op, resolve_op
from scheduler.reference.operand_types import round_operands

Value: TypeAlias = "Array | int | float | bool | None"

_STRIDE_OPS = (
    *("aten.as_strided", "aten.as_strided_copy", "aten.as_strided_scatter"),
    *("aten.resize", "aten.resize_as"),
)
_CONVERTED = (Elements.CONVERTED, Elements.CONVERTED_COPY)


def evaluate(
    node: Node,
    values: Mapping[str, Any],
    bindings: Mapping[str, int],
    *,
    dtypes: Mapping[str, DType] | None = None,
    graph: Graph | None = None,
    round_casts: bool = False,
    roundings: RoundingNoise | None = None,
    iteration: str = "",
) -> dict[str, Any]:
    """Compute a node's results, by name, in float64.

    ``values`` holds every value that the node reads, symbolic integers as ``int``. ``graph`` is
    the node's graph: a few ops need their tensors' own types (``rms_norm`` without eps), and some
    have subgraphs as arguments. ``dtypes`` are those types if there is no graph yet. An in-place op
    returns its new value and does not change ``values``. A result may be a view of an argument.
    ``roundings`` are those of ``run``, for subgraphs among the arguments. ``iteration`` identifies
    the run of a graph that runs more than once: each run draws different random numbers.

    Raises ``UnsupportedOpError`` if there is no rule for the op or for this use of it, and
    ``UserError`` if the arguments do not fit the op.
    """
    spec = resolve_op(node.target)
    bound = spec.bind(node)
    args = {name: _resolve(arg, values, bindings) for name, arg in bound.items()}
    tensors: Mapping[str, TensorMeta] = {} if graph is None else graph.tensors

    def type_of(name: str) -> DType | None:
        return tensors[name].dtype if name in tensors else (dtypes or {}).get(name)

    args[OWN_DTYPE] = next(filter(None, map(type_of, node_references(node))), None)
    args |= round_operands(spec.op.name, bound, args, type_of, next(iter(node.outputs), ""))
    if may_draw_random(node.target):
        args[RANDOM] = (bindings.get(SEED, 0), stream_id(node.outputs[0] + iteration))
    if node.target == PHILOX_RAND:
        args[RANDOM] = bindings.get(BLOCKS, DEFAULT_BLOCKS)
    if spec.op.name in _STRIDE_OPS:
        args[STRIDES] = None if graph is None else _strides(node, graph, bindings)
    if graph is not None:
        args[RUN] = _runner(graph, bindings, round_casts, roundings, iteration)
    with np.errstate(all="ignore"):
        try:
            result = spec.op.reference(args)
        except UnsupportedUseError as error:
            raise UnsupportedOpError(node.target, str(error)) from None
        except (ValueError, IndexError) as error:
            # NumPy, like torch, has no maximum of an empty tensor (a data-dependent size of 0).
            if not any(isinstance(arg, np.ndarray) and not arg.size for arg in args.values()):
                raise
            raise UserError(
                f"node {node.name!r}: {node.target} of an empty tensor: {error}"
            ) from None
        dtype = args.get("dtype")
        if round_casts and spec.op.elements in _CONVERTED and isinstance(dtype, DType):
            result = round_to_dtype(result, dtype)
    results = result if isinstance(result, tuple) else (result,)
    if spec.mutates:
        written = np.asarray(args[spec.mutates])
        results = tuple(np.asarray(r).astype(written.dtype, copy=False) for r in results)
    if len(results) < len(node.outputs):
        raise UserError(
            f"node {node.name!r}: {node.target} makes {len(results)} values, "
            f"not {len(node.outputs)}"
        )
    return {
        name: value if isinstance(value, int | float | complex | None) else np.asarray(value)
        for name, value in zip(node.outputs, results, strict=False)
    }


def run(
    graph: Graph,
    inputs: Mapping[str, Any],
    bindings: Mapping[str, int],
    keep: Collection[str] | None = None,
    *,
    round_casts: bool = False,
    missing: dict[str, str] | None = None,
    sizes: dict[str, int] | None = None,
    roundings: RoundingNoise | None = None,
) -> dict[str, Any]:
    """Compute the graph's outputs, and the values named in ``keep``, by name.

    ``inputs`` maps every input's name to its array (any float type; bfloat16 as float values, not
    as bits). They are not changed. Values are freed after their last use. Kept values are those
    that the node computed, even if a later op writes to them in place.

    If ``missing`` is given, values that depend on a node without a reference are omitted, and
    ``missing`` maps each to the reason; otherwise ``UnsupportedOpError`` is raised. Such a node is
    ignored if no requested value depends on it.

    With ``roundings`` the operands and results of arithmetic are perturbed by as much as kernels
    may round them, and are infinite beyond their type's range.

    Raises ``UserError`` as ``evaluate`` does; if a result's shape differs from the graph's, naming
    the node; and if a data-dependent size is outside the range of the export. Data-dependent sizes
    in ``bindings`` are ignored; ``sizes`` receives their values.
    """
    evaluation = _Run(graph, inputs, backed_bindings(bindings), round_casts, roundings)
    outputs = evaluation.outputs(set(keep or ()))
    if sizes is not None:
        sizes.update(evaluation.bindings)
    if missing is not None:
        missing.update((name, str(error)) for name, error in evaluation.missing.items())
    elif evaluation.missing:
        raise next(iter(evaluation.missing.values()))
    return outputs


def symbolic_values(graph: Graph, bindings: Mapping[str, int]) -> dict[str, int]:
    """Return the symbolic integers of the graph at these sizes, as ``evaluate`` takes them.
    Those that depend on unknown sizes are omitted."""
    concrete = dict(bindings)
    return {
        name: evaluate_expr(expr, concrete)
        for name, expr in graph.sym_ints.items()
        if all(size in concrete for size in unbacked_sizes(expr))
    }


def read_sizes(graph: Graph, values: Mapping[str, Any]) -> dict[str, int]:
    """Return the data-dependent sizes that these values, by name, determine."""
    sizes: dict[str, int] = {}
    for name, value in values.items():
        if name in graph.sym_ints:
            pairs = [(graph.sym_ints[name], value)]
        elif name in graph.tensors and value is not None:
            pairs = list(zip(graph.tensors[name].size, np.shape(value), strict=False))
        else:
            continue
        sizes |= {e.name: int(n) for e, n in pairs if e.is_Symbol and is_unbacked(e.name)}
    return sizes


def _strides(node: Node, graph: Graph, bindings: Mapping[str, int]) -> tuple[int, ...] | None:
    """Return the strides of a node's first tensor if it covers all of its memory, else None."""
    name = next(node_references(node))
    sizes = dict(bindings)

    def elements(value: str) -> int:
        return prod(evaluate_expr(size, sizes) for size in graph.tensors[value].size)

    if name not in graph.tensors or elements(name) != elements(memory_root(graph, name)):
        return None
    if not knows_strides(graph, name):
        return None
    return tuple(evaluate_expr(step, sizes) for step in graph.tensors[name].stride)


def _runner(
    graph: Graph,
    bindings: Mapping[str, int],
    rounds: bool,
    roundings: RoundingNoise | None,
    iteration: str,
) -> Any:
    """Return a function that runs a subgraph of a node: from its inputs to its outputs."""

    run_counts: Counter[str] = Counter()

    def run_subgraph(part: Subgraph, inputs: Iterable[Any]) -> tuple[Any, ...]:
        count = run_counts[part.name]
        run_counts[part.name] += 1
        inner = _Run(
            graph.subgraph(part),
            dict(zip(part.inputs, inputs, strict=True)),
            bindings,
            rounds,
            roundings,
            f"{iteration}.{count}" if count else iteration,
        )
        outputs = inner.outputs(set())
        if inner.missing:
            raise next(iter(inner.missing.values()))
        return tuple(outputs[name] for name in part.outputs)

    return run_subgraph


def _resolve(argument: Argument, values: Mapping[str, Any], bindings: Mapping[str, int]) -> Any:
    if isinstance(argument, Ref):
        return values[argument.name]
    if isinstance(argument, tuple):
        return tuple(_resolve(part, values, bindings) for part in argument)
    if isinstance(argument, sympy.Expr):
        return evaluate_expr(argument, dict(bindings))
    return argument


_REINTERPRETED = (
    "reinterprets memory that the model writes in place; export the model with run_decompositions()"
)


class _Run:
    """One evaluation of a whole graph."""

    def __init__(
        self,
        graph: Graph,
        inputs: Mapping[str, Any],
        bindings: Mapping[str, int],
        rounds: bool,
        roundings: RoundingNoise | None = None,
        iteration: str = "",
    ) -> None:
        self._iteration = iteration
        self._graph = graph
        self.bindings = dict(bindings)
        self._rounds = rounds
        self._roundings = roundings
        overloads = (lookup_op(node.target) for node in graph.nodes)
        self._writes = any(overload and overload.mutates for overload in overloads)
        self._written = written_values(graph) if self._writes else set()
        self._sizes: dict[Any, int | None] = {}
        self._values: dict[str, Any] = {}
        self._unsupported: dict[str, UnsupportedOpError] = {}
        #: Requested values that could not be computed.
        self.missing: dict[str, UnsupportedOpError] = {}
        for value in graph.inputs:
            if value.name not in inputs:
                raise UserError(f"input {value.name!r} is missing")
            name, content = value.name, inputs[value.name]
            if name in graph.tensors:
                content = self._checked(f"input {name!r}", name, np.asarray(content))
                content = self._copy_to_layout(name, content) if self._writes else content
            self._values[name] = content if name in graph.tensors else int(content)

    def outputs(self, keep: set[str]) -> dict[str, Any]:
        targets = keep | set(self._graph.outputs)
        last = last_uses(self._graph)
        memory = AliasTracker(self._graph, last)
        kept: dict[str, Any] = {n: self._snapshot(v) for n, v in self._values.items() if n in keep}
        for position, node in enumerate(self._graph.nodes):
            written = memory.record(node)
            results = self._known_results(node, memory)
            for name, value in results.items():
                self._values[name] = value
                if name in keep:
                    kept[name] = self._snapshot(value)
            if written is not None and not results:
                for name in (written, *memory.live_aliases(node, written, position)):
                    self._unsupported[name] = self._unsupported[node.outputs[0]]
            for name in {*node_references(node), *node.outputs}:
                if last.get(name, -1) <= position and name not in targets:
                    self._values.pop(name, None)
        # The outputs in the model's order, then kept values in order of computation.
        values = [value.name for value in self._graph.inputs]
        values += [output for node in self._graph.nodes for output in node.outputs]
        names = dict.fromkeys(self._graph.outputs)
        names |= dict.fromkeys(name for name in values if name in targets)
        results_by_name = {
            name: kept[name] if name in kept else self._values.get(name) for name in names
        }
        self.missing = {
            name: self._unsupported[name]
            for name in results_by_name
            if name in self._unsupported and name not in kept
        }
        return {name: value for name, value in results_by_name.items() if name not in self.missing}

    def _known_results(self, node: Node, memory: AliasTracker) -> dict[str, Any]:
        """Compute a node's results; empty, with the reason recorded, if that is not possible."""
        operands = (name for name in node_references(node) if name in self._unsupported)
        cause = next((self._unsupported[name] for name in operands), None)
        if cause is None:
            try:
                return self._step(node, memory)
            except UnsupportedOpError as error:
                cause = UnsupportedOpError(error.target, error.reason, node_location(node))
        self._unsupported.update(dict.fromkeys(node.outputs, cause))
        return {}

    def _step(self, node: Node, memory: AliasTracker) -> dict[str, Any]:
        expr = self._graph.sym_ints.get(node.outputs[0]) if len(node.outputs) == 1 else None
        size = None if expr is None else self._size(expr)
        if size is not None:
            return {node.outputs[0]: size}
        spec = resolve_op(node.target)
        rounds = self._roundings is not None and is_arithmetic(spec.op)
        results = evaluate(
            node,
            self._rounded_arguments(node) if rounds else self._values,
            self.bindings,
            graph=self._graph,
            round_casts=self._rounds,
            roundings=self._roundings,
            iteration=self._iteration,
        )
        sizes = read_sizes(self._graph, results)
        new = {name: size for name, size in sizes.items() if name not in self.bindings}
        if new:
            bind_unbacked(self.bindings, self._graph.symbols, new)
            self._sizes.clear()
        if rounds:
            results = self._rounded_results(node, results)
        checked = {n: self._checked(f"node {node.name!r}", n, v) for n, v in results.items()}
        if spec.mutates:
            target = spec.bind(node)[spec.mutates]
            assert isinstance(target, Ref)
            written = self._values[target.name]
            if not written.flags.writeable:
                raise UnsupportedOpError(
                    node.target, "writing to an expanded tensor is not supported"
                )
            for name, value in checked.items():
                if np.shape(value) != written.shape:
                    raise UnsupportedOpError(
                        node.target, "writing to a tensor of another shape is not supported"
                    )
                written[...] = value
                checked[name] = written
        elif self._writes:
            checked = {n: self._place_in_memory(node, n, v, memory) for n, v in checked.items()}
        return checked

    def _place_in_memory(self, node: Node, name: str, value: Any, memory: AliasTracker) -> Any:
        """Put a result into its own memory, or leave it in an argument's, as in torch.

        NumPy's choice between copy and view may differ from torch's, since float32 is float64 here
        and there is no channels-last format.
        """
        if not isinstance(value, np.ndarray):
            return value
        if not memory.shares(name):
            return self._copy_to_layout(name, value)
        if memory.root(name) not in self._written or not value.size:
            return value
        operands = (self._values.get(operand) for operand in node_references(node))
        arrays = (operand for operand in operands if isinstance(operand, np.ndarray))
        if not any(np.may_share_memory(array, value) for array in arrays):
            raise UnsupportedOpError(node.target, _REINTERPRETED)
        return value

    def _copy_to_layout(self, name: str, value: Any) -> Any:
        """Copy a value, with its elements in the memory order of the graph's strides."""
        meta = self._graph.tensors[name]
        steps = [self._size(step) for step in meta.stride]
        order = list(range(value.ndim))
        if None not in steps:  # else a stride depends on data
            order.sort(key=lambda d: -(steps[d] or 0))
        return np.array(value.transpose(order), order="C").transpose(np.argsort(order))

    def _rounded_arguments(self, node: Node) -> Mapping[str, Any]:
        high = self._graph.float32_matmul_precision is MatmulPrecision.HIGH
        f32_eps = TF32_EPS if high and resolve_op(node.target).op.name in MATMUL_OPS else 0.0
        rounded: dict[str, Any] = {}
        for name in sorted(set(node_references(node))):
            meta = self._graph.tensors.get(name)
            is_f32 = meta is not None and meta.dtype is DType.F32
            rounded[name] = self._rounded(name, self._values[name], f32_eps if is_f32 else 0.0)
        return ChainMap(rounded, self._values)

    def _rounded_results(self, node: Node, results: Mapping[str, Any]) -> dict[str, Any]:
        """Perturb results as their stores may round them; running sums also along the scan."""
        spec = resolve_op(node.target)
        dim = spec.bind(node).get("dim") if spec.op.name in SCAN_OPS else None
        rounded: dict[str, Any] = {}
        for name, result in results.items():
            value = result
            if self._roundings is not None and isinstance(dim, int) and np.ndim(value):
                value = self._roundings.perturb_sum(value, scan_spread(value, dim))
            meta = self._graph.tensors.get(name)
            rounded[name] = self._rounded(name, value, meta.dtype.eps if meta else 0.0)
        return rounded

    def _rounded(self, name: str, value: Any, eps: float) -> Any:
        """Perturb a value as kernels may round it: by ``eps``, or in the accumulation type."""
        meta = self._graph.tensors.get(name)
        if self._roundings is None or meta is None or not isinstance(value, np.ndarray):
            return value
        return self._roundings.perturb(value, meta.dtype, eps)

    def _checked(self, where: str, name: str, value: Any) -> Any:
        """Check a value's shape against its meta, and convert it to the type for that meta."""
        meta = self._graph.tensors.get(name)
        if meta is None or value is None:
            return value
        array = np.asarray(value)
        expected = [self._size(size) for size in meta.size]
        if len(expected) != array.ndim or any(
            size not in (None, extent) for size, extent in zip(expected, array.shape, strict=True)
        ):
            raise UserError(
                f"{where}: {name!r} has the shape {list(array.shape)}, but the graph "
                f"states {[str(size) for size in meta.size]}"
            )
        return array.astype(compute_dtype(meta.dtype), copy=False)

    def _size(self, expr: Any) -> int | None:
        """Return the size at these bindings; None if it depends on unknown data."""
        if expr not in self._sizes:
            names = {str(symbol) for symbol in expr.free_symbols}
            is_known = names <= self.bindings.keys()
            self._sizes[expr] = evaluate_expr(expr, self.bindings) if is_known else None
        return self._sizes[expr]

    def _snapshot(self, value: Any) -> Any:
        return np.array(value) if self._writes and isinstance(value, np.ndarray) else value
