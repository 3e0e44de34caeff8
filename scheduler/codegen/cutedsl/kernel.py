"""The Python side of a kernel's interface: the host function's parameters, and the constants with
which the build checks a call and sizes the workspace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy

from scheduler.codegen.cutedsl.index import CountPrinter
from scheduler.codegen.kernel import ArgType
from scheduler.codegen.kernel_interface import KernelInterface
from scheduler.ir.graph import Expr

_SCALARS: Mapping[ArgType, str] = {
    "i32": "cutlass.Int32",
    "i64": "cutlass.Int64",
    "f32": "cutlass.Float32",
    "f64": "cutlass.Float64",
}


class CuteDSLTemplateKernel(KernelInterface):
    """A kernel under construction, as CuteDSL declares it."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the arguments, in order."""
        return tuple(arg.name for arg in self.args)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the parameters of a kernel or of the host function, without workspace and
        stream."""
        return tuple(
            f"{arg.name}: {'cute.Pointer' if arg.type == 'ptr' else _SCALARS[arg.type]}"
            for arg in self.args
        )

    def constants(
        self,
        points: Expr,
        workspace_bytes: Expr,
        names: Mapping[str, str] | None = None,
        elements: Mapping[str, Expr] | None = None,
    ) -> str:
        """Return the constants that the build reads from a source: its arguments, and counts as C
        expressions of them.

        ``points`` are the elements of the result: with none nothing is launched. ``names`` are the
        texts of symbols with other names in the source. ``elements`` of a buffer are the minimum
        for which a pointer is required; by default, all of the buffer's.
        """
        count = CountPrinter(names=names)
        arguments = (
            f"({', '.join(map(_text, (arg.name, arg.type, arg.dtype)))})" for arg in self.args
        )
        if elements is None:
            pointers = [arg for arg in self.args if arg.type == "ptr"]
            elements = {arg.name: sympy.Mul(*self.buffer_of(arg).size) for arg in pointers}
        counts = (f"{_text(name)}: {_text(count(numel))}" for name, numel in elements.items())
        return (
            f"ARGUMENTS = ({_lines(arguments)})\n"
            f"POINTS = {_text(count(points))}\n"
            f"ELEMENTS = {{{_lines(counts)}}}\n"
            f"WORKSPACE = {_text(count(workspace_bytes))}\n"
        )


def _lines(entries: Iterable[str]) -> str:
    return "".join(f"\n    {entry}," for entry in entries) + "\n"


def _text(text: str) -> str:
    return f'"{text}"'
