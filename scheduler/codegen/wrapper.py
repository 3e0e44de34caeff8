"""Render ``wrapper.py``: the bundle's kernels in order, runnable with Python and NumPy alone.

The text is made from the manifest's JSON, so that a wrapper can be rendered for any bundle. Names
in it come from a model's file: they appear in the text as quoted strings or, where Python needs a
variable, as names assigned here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from scheduler.codegen import bundle_paths, wrapper_host, wrapper_loops
from scheduler.codegen.jinja_env import load_template
from scheduler.codegen.names import size_names
from scheduler.codegen.program import StepKind
from scheduler.codegen.wrapper_program import WrapperProgram
from scheduler.ir.bindings import size_sources
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Constant, Guard, Relation, insert_constants
from scheduler.ir.guards import guard_sizes, parse_guard, print_guard
from scheduler.ir.index.functions import is_unbacked, symbol
from scheduler.ir.index.text import parse_expr, print_expr
from scheduler.ir.operations import Assertion
from scheduler.ir.random import BLOCKS, SEED, default_bindings
from scheduler.ir.serialize import constant_from_json
from scheduler.limits import MAX_ITERATIONS
from scheduler.text import MAX_LINE, MAX_NAME, escape_comment, escape_docstring, one_line, shorten

_T = TypeVar("_T")
_INPUT_KINDS = ("input", "parameter", "constant")
# Form of the buffer names that stay unchanged; the wrapper's own text uses no name of this form.
_PLAIN_NAME = re.compile(r"[a-z]+[a-z_]*[0-9]+(_[0-9]+)?")


def render_wrapper(manifest: Mapping[str, Any], libraries: Mapping[str, str]) -> str:
    """Return the wrapper of a bundle with this ``manifest.json``; ``libraries`` has for each target
    the name of the file that a device loads.

    Raises ``UserError`` for an invalid expression in it.
    """
    return _Wrapper(manifest, libraries).render()


class _Wrapper:
    def __init__(self, manifest: Mapping[str, Any], libraries: Mapping[str, str]) -> None:
        self._manifest = manifest
        self._libraries = libraries
        self._buffers: Mapping[str, Mapping[str, Any]] = manifest["buffers"]
        self._symbols = size_names(manifest["graph"]["symbols"])
        self._storage: Mapping[str, str] = manifest.get("storage", {})
        loop_variables = wrapper_loops.loop_variables(manifest.get("loops", ()))
        used_names = {*self._symbols.values(), *loop_variables}
        self._names = _variable_names(self._buffers, used_names)
        self._pools = _variable_names(manifest.get("pools", {}), used_names, "pool")
        self._program = WrapperProgram(manifest)
        self._missing = self._program.missing
        outputs, mutations = manifest["outputs"], manifest.get("mutations", ())
        written_outputs = {mutation["output"] for mutation in mutations}
        self._returned = [name for i, name in enumerate(outputs) if i not in written_outputs]
        self._constants = {
            constant.place: constant.value
            for constant in (
                constant_from_json(entry, "constant_outputs")
                for entry in manifest.get("constant_outputs", ())
            )
        }
        #: Each input that the model writes, and the buffer of its new value.
        self._written = [(mutation["input"], outputs[mutation["output"]]) for mutation in mutations]

    def render(self) -> str:
        symbols, kernels = self._manifest["graph"]["symbols"], self._manifest["kernels"]
        used = {*self._manifest["inputs"], *self._manifest["outputs"]}
        used.update(name for name, _ in self._written)
        used.update(name for call in self._program.calls for name in self._program.buffers_of(call))
        used.update(name for e in self._manifest["externs"] for name in e.get("inputs", ()))
        used.update(
            name for loop in self._program.loops for name in wrapper_loops.owned_buffers(loop)
        )
        used.update(
            name for loop in self._program.loops for name in wrapper_loops.condition_buffers(loop)
        )
        tensors = [
            name for name in self._buffers if self._kind(name) in _INPUT_KINDS and name in used
        ]
        inputs = [name for name in tensors if self._kind(name) == "input"]
        input_shapes = {
            self._key(name): [parse_expr(size) for size in self._buffers[name]["size"]]
            for name in inputs
        }
        unbacked = [name for name in self._symbols if is_unbacked(name)]
        backed = {size: var for size, var in self._symbols.items() if size not in unbacked}
        # A kernel's library: one name for all targets if they agree.
        libraries = sorted(set(self._libraries.values()))
        by_target = f"{dict(sorted(self._libraries.items()))!r}[self.device.target]"
        outputs = {self._key(name) for name in self._returned}
        rewritten_inputs = [name for name, new in self._written if new not in self._missing]
        template = load_template(Path(__file__).parent, "wrapper.py.jinja")
        return template.render(
            layout=bundle_paths,
            numpy_types=[(dtype.label, dtype.numpy) for dtype in DType],
            graph=escape_docstring(self._manifest["graph"]["name"], MAX_NAME),
            hints=[(escape_docstring(name), int(symbols[name]["hint"])) for name in backed],
            inputs=[self._describe_buffer(name) for name in inputs],
            parameters=[self._describe_buffer(name) for name in tensors if name not in inputs],
            symbols=", ".join(backed.values()),
            symbol_names=[(variable, repr(name)) for name, variable in backed.items()],
            symbol_table=_symbol_table(symbols, backed),
            guards=list(self._guards()),
            late_table=_symbol_table(symbols, unbacked) if unbacked else "",
            from_shapes=[
                repr((s.size, s.input, len(input_shapes[s.input]), s.axis, s.factor, s.rest))
                for s in size_sources(input_shapes, backed)
            ],
            seed=repr(SEED) if SEED in self._symbols else "",
            blocks=repr(BLOCKS) if BLOCKS in self._symbols else "",
            drawn=[(repr(name), value) for name, value in default_bindings(self._symbols).items()],
            body=list(self._body(tensors)),
            library=json.dumps(libraries[0]) if len(libraries) == 1 else by_target,
            loops=bool(self._program.loops),
            limit=MAX_ITERATIONS,
            cutedsl=any(kernel["source"].endswith(".py") for kernel in kernels.values()),
            outputs=repr(self._map_returned(self._key, lambda _: None)),
            constants=bool(self._constants),
            # The written inputs that get a new value, and their names among the outputs.
            written=[
                (
                    repr(self._key(name)),
                    repr(name if self._key(name) in outputs else self._key(name)),
                )
                for name in rewritten_inputs
            ],
            missing=self._missing_lines(),
        )

    # -- buffers ---------------------------------------------------------------------------------

    def _kind(self, name: str) -> str:
        return str(self._buffers[name]["kind"])

    def _key(self, name: str) -> str:
        return str(self._buffers[name]["source_name"] or name)

    def _describe_buffer(self, name: str) -> dict[str, str]:
        buffer = self._buffers[name]
        return {
            "key": repr(self._key(name)),
            "dtype": repr(buffer["dtype"]),
            "size": self._tuple(buffer["size"]),
            "stride": self._tuple(buffer["stride"]),
        }

    def _guards(self) -> Iterator[tuple[str, str]]:
        """Yield the guards on sizes, which add to their ranges: as text, and over variables."""
        variables = {symbol(name): symbol(variable) for name, variable in self._symbols.items()}
        for text in self._manifest.get("guards", ()):
            guard = parse_guard(text)
            if all(name in self._symbols for name in guard_sizes(guard)):
                relations = tuple(
                    Relation(r.left.xreplace(variables), r.sign, r.right.xreplace(variables))
                    for r in guard.alternatives
                )
                yield repr(text), print_guard(Guard(relations))

    # -- the calls -------------------------------------------------------------------------------

    def _body(self, tensors: Sequence[str]) -> Iterator[str]:
        for name in tensors:
            buffer = self._describe_buffer(name)
            yield (
                f"{self._names[name]} = run.given(inputs, {buffer['key']}, {buffer['dtype']}, "
                f"{buffer['size']}, {buffer['stride']})"
            )
        rewritten = [(name, new) for name, new in self._written if new not in self._missing]
        for name, _ in rewritten:
            yield f"run.check_written(inputs, {self._key(name)!r})"
        # Exit at the start if no output can be computed; otherwise warn.
        outputs = self._manifest["outputs"]
        if outputs and all(name in self._missing for name in outputs):
            yield f"raise SystemExit({self._missing_reason(self._missing[outputs[0]])!r})"
        elif self._missing_lines():
            yield "for line in MISSING.values():"
            yield "    warnings.warn(line, stacklevel=2)"
        yield from self._program_lines()
        yield from self._result_lines(rewritten)

    def _program_lines(self) -> Iterator[str]:
        """Yield the lines of all steps, each followed by what frees memory after it."""

        def pointer_of(name: str) -> str:
            pool = self._storage.get(name)
            return self._names[name] if pool is None else self._pools[pool]

        last_uses = self._program.last_uses(pointer_of)
        allocated: set[str] = set()
        position = depth = 0
        while position < len(self._program.steps):
            kind, number = self._program.steps[position]
            lines: Iterable[str] = ()
            if kind is StepKind.EXTERN:
                lines = self._extern_lines(self._program.externs[number], allocated)
            elif kind is StepKind.CALL:
                lines = self._call_lines(self._program.calls[number], allocated)
            elif kind is StepKind.END:
                depth -= 1
                ends = wrapper_loops.end_lines(
                    self._program.loops[number], number, self._loop_texts
                )
                lines = ("    " + line for line in ends)
            elif self._program.is_loop_missing(number):
                position = self._program.ends[position]
                lines = [f"# {escape_comment(self._loop_title(number))} is left out: it needs that"]
            else:
                lines = self._loop_begin(number, position, allocated)
            yield from ("    " * depth + line if line else line for line in list(lines))
            depth += kind is StepKind.BEGIN and self._program.steps[position].kind is StepKind.BEGIN
            for pointer in last_uses.get(position, ()):
                yield f"run.device.free({pointer})"
            position += 1

    def _result_lines(self, written: Sequence[tuple[str, str]]) -> Iterator[str]:
        """Yield the lines that check assertions, write inputs and return the outputs."""
        yield "run.device.synchronize()"
        assertions = (Assertion(**assertion) for assertion in self._manifest.get("assertions", ()))
        for name, buffer_assertions in groupby(assertions, attrgetter("buffer")):
            if name not in self._missing:
                yield f"assertions = {self._result(name)}"
                for assertion in buffer_assertions:
                    yield f"if not assertions[{assertion.place}]:"
                    yield f"    raise SystemExit({assertion.failure!r})"
        all_results = self._map_returned(self._result, _python_constant)
        results = f"({', '.join(all_results)}{',' if all_results else ''})"
        if not written:
            yield f"return {results}"
            return
        yield f"results = {results}"
        yield "written = {"
        for name, new in written:
            yield f"    {self._key(name)!r}: {self._result(new)},"
        yield "}"
        yield "run.write_back(inputs, written)"
        yield "return results"

    def _map_returned(
        self, map_value: Callable[[str], _T], map_constant: Callable[[Constant], _T]
    ) -> list[_T]:
        """Map each value that the model returns, in order."""
        values = [map_value(name) for name in self._returned]
        return insert_constants(values, {p: map_constant(v) for p, v in self._constants.items()})

    # -- operations without a kernel -------------------------------------------------------------

    def _extern_lines(self, extern: Mapping[str, Any], allocated: set[str]) -> Iterator[str]:
        """Yield the lines of an operation that runs on the host, or a comment that it is left
        out."""

        def store(name: str, value: str) -> Iterator[str]:
            yield from self._allocations([name], allocated)
            buffer = self._describe_buffer(name)
            shape = f"{buffer['dtype']}, {buffer['size']}, {buffer['stride']}"
            yield f"run.store({self._names[name]}, {value}, {shape})"

        function = wrapper_host.host_function(extern, self._buffers)
        if not function or any(name in self._missing for name in extern["outputs"]):
            yield f"# {escape_comment(self._missing_reason(extern))}"
            return
        yield f"# {escape_comment(shorten(extern['node']))}, on the host"
        yield from wrapper_host.lines(
            extern, self._buffers, self._result, self._symbols.__getitem__, store
        )

    # -- loops -----------------------------------------------------------------------------------

    def _loop_title(self, number: int) -> str:
        loop = self._program.loops[number]
        return f"{shorten(loop['node'])}, {shorten(loop['op'])}"

    def _loop_begin(self, number: int, position: int, allocated: set[str]) -> Iterator[str]:
        """Allocate all memory that the loop needs, so that no step allocates it; then begin the
        loop."""
        for kind, inner_number in self._program.steps[position : self._program.ends[position]]:
            if kind is StepKind.CALL:
                call = self._program.calls[inner_number]
                yield from self._allocations(self._program.buffers_of(call), allocated)
            elif kind is StepKind.BEGIN:
                names = wrapper_loops.owned_buffers(self._program.loops[inner_number])
                yield from self._allocations(names, allocated)
        yield f"# {escape_comment(self._loop_title(number))}"
        yield from wrapper_loops.begin_lines(self._program.loops[number], number, self._loop_texts)

    @property
    def _loop_texts(self) -> wrapper_loops.LoopTexts:
        return wrapper_loops.LoopTexts(self._names.__getitem__, self._to_python, self._slice_bytes)

    def _slice_bytes(self, whole: str) -> str:
        """Return the bytes from one slice of a buffer to the next."""
        buffer = self._buffers[whole]
        stride = self._to_python(buffer["stride"][0])
        return f"({stride}) * {DType.from_label(buffer['dtype']).itemsize}"

    def _missing_reason(self, extern: Mapping[str, Any]) -> str:
        op, node = shorten(extern["op"]), shorten(extern["node"])
        reason = shorten(extern["reason"], MAX_LINE)
        description = f"{op} has no kernel ({reason}), node {node}: use python -m scheduler run"
        return one_line(description, 2 * MAX_LINE)

    def _missing_lines(self) -> list[tuple[str, str]]:
        """Return the missing results: outputs, and new values of inputs."""
        results = [(self._key(name), name) for name in self._returned]
        results += [(self._key(name), new_buffer) for name, new_buffer in self._written]
        lines = {
            key: f"output {shorten(key)} needs {self._missing_reason(self._missing[name])}"
            for key, name in results
            if name in self._missing
        }
        return [(repr(key), repr(line)) for key, line in lines.items()]

    def _allocations(self, names: Sequence[str], allocated: set[str]) -> Iterator[str]:
        for name in names:
            if (
                self._kind(name) in _INPUT_KINDS
                or name in allocated
                or name in self._program.aliases
            ):
                continue
            allocated.add(name)
            buffer = self._buffers[name]
            layout = (
                f"{buffer['dtype']} {self._tuple(buffer['size'])} {self._tuple(buffer['stride'])}"
            )
            pool = self._storage.get(name)
            if pool is None:
                numel = f"elements({self._tuple(buffer['size'])}, {self._tuple(buffer['stride'])})"
                byte_count = f"{numel} * np.dtype(NUMPY[{buffer['dtype']!r}]).itemsize"
                yield f"{self._names[name]} = run.device.allocate({byte_count})  # {layout}"
                continue
            if pool not in allocated:
                allocated.add(pool)
                byte_count = self._to_python(self._manifest["pools"][pool])
                yield f"{self._pools[pool]} = run.device.allocate({byte_count})"
            yield f"{self._names[name]} = {self._pools[pool]}  # {layout}"

    def _call_lines(self, call: Mapping[str, Any], allocated: set[str]) -> Iterator[str]:
        if self._program.is_call_missing(call):
            yield f"# {escape_comment(shorten(call['kernel']))} is left out: it needs that"
            return
        yield from self._allocations(self._program.buffers_of(call), allocated)
        nodes = ", ".join(shorten(node) for node in call.get("nodes", ()))
        yield f"# {escape_comment(nodes)}"
        yield from _fallback_comment(call)
        variants = call.get("variants", ())
        for position, variant in enumerate(variants):
            limit = f"{self._to_python(variant['symbol'])} <= {int(variant['at_most'])}"
            yield f"{'elif' if position else 'if'} {limit}:"
            yield from (f"    {line}" for line in _fallback_comment(variant))
            yield f"    {self._kernel(variant)}"
        if variants:
            yield "else:"
        yield f"{'    ' if variants else ''}{self._kernel(call)}"

    def _kernel(self, call: Mapping[str, Any]) -> str:
        args = [
            self._names[value] if arg["type"] == "ptr" else self._to_python(value)
            for value, arg in self._program.arguments(call)
        ]
        return f"run.kernel({', '.join([repr(call['kernel']), *args])})"

    # -- expressions -----------------------------------------------------------------------------

    def _to_python(self, text: str) -> str:
        """Return an expression of the manifest as Python; parsed, so that nothing else can be
        inserted."""
        variables = {symbol(name): symbol(variable) for name, variable in self._symbols.items()}
        return print_expr(parse_expr(text).xreplace(variables))

    def _tuple(self, texts: Sequence[str]) -> str:
        comma = "," if len(texts) == 1 else ""
        return f"({', '.join(self._to_python(text) for text in texts)}{comma})"

    def _result(self, name: str) -> str:
        if name in self._missing:
            return "None"
        buffer, pointer = self._describe_buffer(name), self._names[name]
        return f"run.result({pointer}, {buffer['dtype']}, {buffer['size']}, {buffer['stride']})"


def _python_constant(value: Constant) -> str:
    """Return a constant as Python, which has no literal for non-finite floats."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return ascii(value)


def _symbol_table(symbols: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return example, minimum and maximum of sizes, as Python."""
    return repr({n: tuple(symbols[n][key] for key in ("hint", "min", "max")) for n in names})


def _fallback_comment(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield a comment if the default replaces a selected kernel that is no longer made."""
    not_made = call.get("choice", {}).get("not_made", "")
    if not_made:
        replaced = f"the selected kernel {escape_comment(shorten(not_made))}"
        yield f"# the default: {replaced} is not generated by this version"


def _variable_names(names: Iterable[str], used: set[str], prefix: str = "") -> dict[str, str]:
    """Return a variable for each name: the name itself if it is plain and free, such as ``buf12``
    and ``arg3_1``. They are added to ``used``."""
    variables: dict[str, str] = {}
    for position, name in enumerate(names):
        variable = prefix + name if not name.startswith(prefix) else name
        if not _PLAIN_NAME.fullmatch(variable) or variable in used:
            variable = f"{prefix or 'memory_'}v{position}"
        while variable in used:
            variable += "_"
        used.add(variable)
        variables[name] = variable
    return variables
