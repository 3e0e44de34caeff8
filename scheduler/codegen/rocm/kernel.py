"""The C++ side of a kernel's interface: the exported function that launches it through HIP."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.codegen.kernel import ArgType
from scheduler.codegen.kernel_interface import KernelInterface
from scheduler.ir.operations import Buffer

_SCALARS: Mapping[ArgType, str] = {
    "i32": "int32_t",
    "i64": "int64_t",
    "f32": "float",
    "f64": "double",
}
_HOST_PARAMETERS = "size_t* workspace_size, uint8_t* workspace, hipStream_t stream"


class ROCmTemplateKernel(KernelInterface):
    """A kernel under construction, as HIP C++ declares and checks it."""

    def parameters(self) -> str:
        """Return the C parameter list, without the three that every exported function ends with."""
        types = (
            f"{'' if arg.is_output else 'const '}{self.buffer_of(arg).dtype.cpp}*"
            if arg.type == "ptr"
            else _SCALARS[arg.type]
            for arg in self.args
        )
        return ", ".join(f"{type_} {arg.name}" for type_, arg in zip(types, self.args, strict=True))

    def signature(self, name: str) -> str:
        """Return the exported function's head."""
        parameters = self.parameters()
        return (
            f'extern "C" PT_EXPORT int {name}('
            f"{parameters}{', ' if parameters else ''}{_HOST_PARAMETERS})"
        )

    def check_not_null(self, buffer: Buffer | str, numel: str) -> str:
        """Return a C statement: a null pointer is legal only while ``numel`` (a C expression) is
        0."""
        name = self.arg_name(buffer)
        size = numel if numel.isidentifier() else f"({numel})"
        return f"if ({name} == nullptr && {size} > 0) return kiln::kNullPointer;"
