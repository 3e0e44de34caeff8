"""Renders ``wrapper.py``: the bundle's kernels in order, runnable with Python and NumPy alone.

The text is made from the manifest's JSON, so that a wrapper can be had of any bundle. Names in
it come from a model's file: they stand in the text as quoted strings or, where Python needs a
variable, as names given here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from scheduler.codegen import layout
from scheduler.ir.index.text import parse_expr, print_expr

_GIVEN = ("input", "parameter", "constant")
_RUNTIME_NAMES = frozenset({"run", "inputs", "device", "bindings", "bound", "np", "Max", "Min"})


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - the text is Python, no page
        auto_reload=False,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("wrapper.py.jinja")


def render_wrapper(manifest: Mapping[str, Any], libraries: Mapping[str, str]) -> str:
    """The wrapper of a bundle with this ``manifest.json``; ``libraries`` has for each target the
    name of the file that a device loads.

    Raises ``UserError`` for an expression in it that is none.
    """
    return _Wrapper(manifest, libraries).render()


class _Wrapper:
    def __init__(self, manifest: Mapping[str, Any], libraries: Mapping[str, str]) -> None:
        self._manifest = manifest
        self._libraries = libraries
        self._buffers: Mapping[str, Mapping[str, Any]] = manifest["buffers"]
        self._symbols = sorted(manifest["graph"]["symbols"])
        self._storage: Mapping[str, str] = manifest.get("storage", {})
        reserved = {*self._symbols, *_RUNTIME_NAMES}
        self._names = {
            name: _variable(name, position, reserved) for position, name in enumerate(self._buffers)
        }
        pools = manifest.get("pools", {})
        self._pools = {
            name: _variable(name, position, {*reserved, *self._names.values()}, "pool")
            for position, name in enumerate(pools)
        }

    def _library(self) -> str:
        """The name of a kernel's library, as Python: one for all targets where they agree."""
        names = sorted(set(self._libraries.values()))
        if len(names) == 1:
            return json.dumps(names[0])
        return f"{dict(sorted(self._libraries.items()))!r}[self.device.target]"

    def render(self) -> str:
        symbols = self._manifest["graph"]["symbols"]
        used = {name for name in self._buffers if self._is_used(name)}
        given = [name for name in self._buffers if self._kind(name) in _GIVEN and name in used]
        inputs = [name for name in given if self._kind(name) == "input"]
        return _template().render(
            layout=layout,
            graph=_one_line(self._manifest["graph"]["name"]),
            hints=[(name, symbols[name]["hint"]) for name in self._symbols],
            inputs=[self._described(name) for name in inputs],
            parameters=[self._described(name) for name in given if name not in inputs],
            symbols=", ".join(["*", *self._symbols]) if self._symbols else "",
            symbol_names=self._symbols,
            symbol_table=repr(
                {n: (symbols[n]["hint"], symbols[n]["min"], symbols[n]["max"]) for n in symbols}
            ),
            from_shapes=list(self._from_shapes(inputs)),
            body=list(self._body(given)),
            library=self._library(),
            outputs=repr([self._key(name) for name in self._manifest["outputs"]]),
        )

    # -- buffers ---------------------------------------------------------------------------------

    def _kind(self, name: str) -> str:
        return str(self._buffers[name]["kind"])

    def _key(self, name: str) -> str:
        return str(self._buffers[name]["source_name"] or name)

    def _is_used(self, name: str) -> bool:
        return (
            name in self._manifest["inputs"]
            or name in self._manifest["outputs"]
            or any(name in call["args"].values() for call in self._manifest["calls"])
        )

    def _described(self, name: str) -> dict[str, str]:
        buffer = self._buffers[name]
        return {
            "key": repr(self._key(name)),
            "dtype": repr(buffer["dtype"]),
            "size": _tuple(buffer["size"]),
            "stride": _tuple(buffer["stride"]),
        }

    def _from_shapes(self, inputs: Sequence[str]) -> Iterator[tuple[str, str, int]]:
        found: set[str] = set()
        for name in inputs:
            for axis, size in enumerate(self._buffers[name]["size"]):
                if size in self._symbols and size not in found:
                    found.add(size)
                    yield repr(size), repr(self._key(name)), axis

    # -- the calls -------------------------------------------------------------------------------

    def _body(self, given: Sequence[str]) -> Iterator[str]:
        for name in given:
            item = self._described(name)
            yield (
                f"{self._names[name]} = run.given(inputs, {item['key']}, {item['dtype']}, "
                f"{item['size']}, {item['stride']})"
            )
        calls = self._manifest["calls"]
        externs: dict[int, list[Mapping[str, Any]]] = {}
        for extern in self._manifest["externs"]:
            externs.setdefault(extern["position"], []).append(extern)
        last = self._last_uses()
        allocated: set[str] = set()
        for position, call in enumerate(calls):
            yield from self._externs(externs.get(position, ()))
            yield from self._allocations(call, allocated)
            yield from self._call(call)
            for place in last.get(position, ()):
                yield f"run.device.free({place})"
        yield from self._externs(externs.get(len(calls), ()))
        yield "run.device.synchronize()"
        results = ", ".join(self._result(name) for name in self._manifest["outputs"])
        yield f"return ({results},)"

    def _externs(self, externs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        for extern in externs:
            what = f"{extern['op']} has no kernel ({extern['reason']}): use python -m scheduler run"
            yield f"raise SystemExit({what!r})"

    def _allocations(self, call: Mapping[str, Any], allocated: set[str]) -> Iterator[str]:
        for name in self._buffers_of(call):
            if self._kind(name) in _GIVEN or name in allocated:
                continue
            allocated.add(name)
            buffer = self._buffers[name]
            about = f"{buffer['dtype']} {_tuple(buffer['size'])} {_tuple(buffer['stride'])}"
            pool = self._storage.get(name)
            if pool is None:
                extent = f"elements({_tuple(buffer['size'])}, {_tuple(buffer['stride'])})"
                amount = f"{extent} * np.dtype(NUMPY[{buffer['dtype']!r}]).itemsize"
                yield f"{self._names[name]} = run.device.allocate({amount})  # {about}"
                continue
            if pool not in allocated:
                allocated.add(pool)
                amount = _python(self._manifest["pools"][pool])
                yield f"{self._pools[pool]} = run.device.allocate({amount})"
            yield f"{self._names[name]} = {self._pools[pool]}  # {about}"

    def _call(self, call: Mapping[str, Any]) -> Iterator[str]:
        nodes = ", ".join(_one_line(node) for node in call.get("nodes", ()))
        yield f"# {nodes}"
        yield from _why(call)
        variants = call.get("variants", ())
        for position, variant in enumerate(variants):
            limit = f"{_python(variant['symbol'])} <= {int(variant['at_most'])}"
            yield f"{'elif' if position else 'if'} {limit}:"
            yield from (f"    {line}" for line in _why(variant))
            yield f"    {self._kernel(variant)}"
        if variants:
            yield "else:"
        yield f"{'    ' if variants else ''}{self._kernel(call)}"

    def _kernel(self, call: Mapping[str, Any]) -> str:
        order = [arg["name"] for arg in self._manifest["kernels"][call["kernel"]]["args"]]
        values = (call["args"][name] for name in order)
        args = [self._names[v] if v in self._names else _python(v) for v in values]
        return f"run.kernel({', '.join([repr(call['kernel']), *args])})"

    def _buffers_of(self, call: Mapping[str, Any]) -> list[str]:
        return [value for value in call["args"].values() if value in self._buffers]

    def _last_uses(self) -> dict[int, list[str]]:
        """What to give back after each call: memory of intermediates after its last use."""
        last: dict[str, int] = {}
        for position, call in enumerate(self._manifest["calls"]):
            for name in self._buffers_of(call):
                if self._kind(name) == "intermediate" and name not in self._manifest["outputs"]:
                    pool = self._storage.get(name)
                    place = self._pools[pool] if pool is not None else self._names[name]
                    last[place] = position
        frees: dict[int, list[str]] = {}
        for place, position in last.items():
            frees.setdefault(position, []).append(place)
        return frees

    def _result(self, name: str) -> str:
        item = self._described(name)
        pointer = self._names[name]
        return f"run.result({pointer}, {item['dtype']}, {item['size']}, {item['stride']})"


def _why(call: Mapping[str, Any]) -> Iterator[str]:
    """A comment where the default stands in for a selected kernel that is not made any more."""
    not_made = call.get("choice", {}).get("not_made", "")
    if not_made:
        gone = f"the selected kernel {_one_line(not_made)}"
        yield f"# the default: {gone} is not made by this version of the generator"


def _variable(name: str, position: int, reserved: set[str], prefix: str = "") -> str:
    """The name itself where it is plain and free, as ``buf12`` and ``arg3_1`` are."""
    preferred = prefix + name if prefix and not name.startswith(prefix) else name
    if re.fullmatch(r"[a-z]+[a-z_]*\d+(_\d+)?", preferred) and preferred not in reserved:
        return preferred
    return f"{prefix or 'memory_'}v{position}"


def _python(text: str) -> str:
    """An expression of the manifest as Python; parsed, so that nothing else can stand there."""
    return print_expr(parse_expr(text))


def _tuple(items: Sequence[str]) -> str:
    comma = "," if len(items) == 1 else ""
    return f"({', '.join(_python(item) for item in items)}{comma})"


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() and c not in '"\\' else " " for c in text)
