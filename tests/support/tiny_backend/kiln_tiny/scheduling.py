"""Pointwise nodes as loops in C, a number of points at each step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from scheduler.codegen.cpp.index import IndexPrinter
from scheduler.codegen.kernel import Launch
from scheduler.codegen.kernel_interface import KernelInterface
from scheduler.codegen.names import PLACEHOLDER, size_names
from scheduler.codegen.scheduling import BaseScheduling, TemplateTable
from scheduler.codegen.template import Config, KernelTemplate, RenderedTemplate
from scheduler.errors import Rejected, Stage
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import as_expr, symbol
from scheduler.ir.operations import GroupKind
from scheduler.ir.values import Call, Cast, Const, Load, Value

SOURCE_FILE = "source.c"
_OPERATORS = {"add": "+", "mul": "*", "sub": "-"}


class LoopTemplate(KernelTemplate):
    """One loop a dimension; the innermost one in steps of ``unroll`` points."""

    name = "loop"
    prefix = "tiny"
    source_file = SOURCE_FILE

    def configs(self) -> Sequence[Config]:
        return [{"unroll": count} for count in (1, 2, 4, 5)]

    def reject(self, config: Config) -> Rejected | None:
        extent = self.node.members[0].points[-1].size
        if extent % int(config["unroll"]) != 0:
            return Rejected(Stage.RULE, f"{extent} is no multiple of {config['unroll']}")
        return None

    def default_config(self) -> Config:
        return {"unroll": 1}

    @cached_property
    def kernel(self) -> KernelInterface:
        """Inputs, outputs, then the symbolic sizes."""
        kernel = KernelInterface()
        buffers = self.lowered.buffers
        inputs = [buffers[name] for name in self.node.reads]
        outputs = [buffers[name] for name in self.node.writes]
        names = [f"in{i}" for i in range(len(inputs))] + [f"out{i}" for i in range(len(outputs))]
        kernel.def_kernel(inputs, outputs, names)
        for size, name in self.sizes.items():
            kernel.add_scalar(name, symbol(size), "i64")
        return kernel

    @cached_property
    def sizes(self) -> dict[str, str]:
        """What the symbolic sizes are called in C: a model may call them anything."""
        return size_names(self.lowered.graph.symbols)

    @cached_property
    def index(self) -> IndexPrinter:
        """Sizes, variables and offsets in C."""
        return IndexPrinter(names=self.sizes)

    def render(self, config: Config) -> RenderedTemplate:
        kernel = self.kernel
        parameters = ", ".join(
            f"long {arg.name}"
            if arg.type != "ptr"
            else f"{'' if arg.is_output else 'const '}float* {arg.name}"
            for arg in kernel.args
        )
        text = (
            "#include <stddef.h>\n"
            f"int {PLACEHOLDER}({parameters}, size_t* workspace_size, unsigned char* workspace,"
            " void* stream) {\n"
            "  if (workspace_size) { *workspace_size = 0; return 0; }\n"
            f"{self._loops(int(config['unroll']))}"
            "  return 0;\n}\n"
        )
        one = as_expr(1)
        launch = Launch(
            PLACEHOLDER, (one, one, one), (1, 1, 1), 0, tuple(a.name for a in kernel.args)
        )
        values = kernel.call_kernel(PLACEHOLDER, self.node.nodes).args
        return RenderedTemplate(text, kernel.args, values, (launch,), as_expr(0))

    def _loops(self, unroll: int) -> str:
        axes = [(self.index(a.var), self.index(a.size)) for a in self.node.members[0].points]
        *outer, (inner, extent) = axes
        heads = [f"for (long {var} = 0; {var} < {size}; ++{var})" for var, size in outer]
        heads.append(f"for (long base = 0; base < {extent}; base += {unroll})")
        points = "".join(
            f"    {{ const long {inner} = base + {step};\n{self._point()}    }}\n"
            for step in range(unroll)
        )
        return f"  {' '.join(heads)} {{\n{points}  }}\n"

    def _point(self) -> str:
        lines = ""
        computed: set[str] = set()
        for member in self.node.members:
            (store,) = member.results
            lines += f"      const float {store.buffer} = {self._value(store.value, computed)};\n"
            computed.add(store.buffer)
            if store.buffer in self.node.writes:
                lines += f"      {self._place(store.buffer, store.index)} = {store.buffer};\n"
        return lines

    def _value(self, value: Value, computed: set[str]) -> str:
        if isinstance(value, Load) and value.dtype is DType.F32:
            known = value.buffer in computed
            return value.buffer if known else self._place(value.buffer, value.index)
        if isinstance(value, Const):
            return f"{float(value.value)!r}f"
        if isinstance(value, Cast) and value.dtype is DType.F32:
            return self._value(value.value, computed)
        if isinstance(value, Call) and value.op in _OPERATORS:
            one, other = (self._value(arg, computed) for arg in value.args)
            return f"({one} {_OPERATORS[value.op]} {other})"
        raise NotImplementedError(f"this backend has no C for {value}")

    def _place(self, name: str, index: tuple[Expr, ...]) -> str:
        strides = self.lowered.buffers[name].stride
        offset = sum((i * stride for i, stride in zip(index, strides, strict=True)), as_expr(0))
        return f"{self.kernel.arg_name(name)}[{self.index(offset)}]"


class TinyScheduling(BaseScheduling):
    """What this backend makes of a schedule."""

    source_file = SOURCE_FILE

    def templates(self) -> TemplateTable:
        return {GroupKind.POINTWISE: LoopTemplate}
