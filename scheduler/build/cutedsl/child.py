"""Compile one CuteDSL source in a sandboxed process: ``child.py NAME ARCH LEVEL``.

It imports nothing of this package and is started as a script: it reads only the interpreter and
nvidia-cutlass-dsl. From ``source.py`` in the working folder it makes the PTX, the cubin, the output
of ptxas, the object with the host's code, and a C file with the exported function. Errors are
printed as ``source.py:LINE:COLUMN: error: MESSAGE``.
"""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SOURCE, PTX, CUBIN, USAGE = "source.py", "kernel.ptx", "kernel.cubin", "kernel.usage"
OBJECT, HOST, EXPORTS = "kernel.device", "kernel.host.c", "kernel.exports"
SHARED, OUTPUT = "kernel.shared", "kernel.output"
HEADER = "nvidia/cutedsl.h"
_POINTER_ALIGNMENT, _WORKSPACE_ALIGNMENT = 16, 256
_CONSTANTS = ("ARGUMENTS", "WORKSPACE", "POINTS", "ELEMENTS")
_ELEMENTS = {
    **{"f64": "Float64", "f32": "Float32", "f16": "Float16", "bf16": "BFloat16"},
    **{"i64": "Int64", "i32": "Int32", "i16": "Int16", "i8": "Int8", "u8": "Uint8"},
    **{"u16": "Uint16", "u32": "Uint32", "u64": "Uint64"},
    **{"b8": "Uint8", "f8e4m3fn": "Float8E4M3FN", "f8e5m2": "Float8E5M2"},
}
_SCALARS = {"i32": "Int32", "i64": "Int64", "f32": "Float32", "f64": "Float64"}
_C_SCALARS = {"i32": "int32_t", "i64": "int64_t", "f32": "float", "f64": "double"}
# The operators of an expression of the sizes; all of them mean the same in C.
_EXPRESSION = re.compile(r"(?:[A-Za-z_]\w*|\d+|[-+*/%()?:<>=! ])*")
# The host part in the LLVM dialect: the third field of each launch's configuration is its shared
# memory in bytes, and its kernel is a global.
_SHARED_FIELD = re.compile(
    r"(%\w+) = llvm\.getelementptr %\w+\[0, 2\] : \(!llvm\.ptr\) -> !llvm\.ptr, "
    r"!llvm\.struct<\(array<3 x i32>, array<3 x i32>, i64, ptr, ptr, i32\)>\s+"
    r"llvm\.store (%\w+), \1 : i64"
)
_CONSTANT = r"^ *{} = llvm\.mlir\.constant\((\d+) : i64\)"
_LAUNCHED = re.compile(
    r"llvm\.mlir\.addressof @kernels_(\w+) : !llvm\.ptr\s+%\w+ = llvm\.load .*\s+"
    r"%\w+ = llvm\.call @_cudaLaunchKernelEx\("
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# The output of ptxas, as the DSL passes it on, except the timings.
_PTXAS = re.compile(r"^(?:.*?ptxas output:)? *(ptxas (?:info|warning| *\.).*)$", re.MULTILINE)


class SourceError(Exception):
    """The source does not have the form that the build expects."""


def main(name: str, arch: str, level: str) -> int:
    """Return status 0, or 1 with the errors printed."""
    os.environ |= {"CUTE_DSL_ARCH": arch, "CUTE_DSL_NO_CACHE": "1", "NO_COLOR": "1"}
    try:
        with _redirect_output(OUTPUT):
            compile_source(name, level)
        Path(USAGE).write_text(usage(_output()))
    except OSError as error:  # a full disk, not the source's fault
        print(f"error: {error.strerror}")
        return 1
    except BaseException as error:  # noqa: BLE001 - any error of a source or of the DSL
        print(format_error(error))
        print(_output())
        return 1
    return 0


@contextmanager
def _redirect_output(file: str) -> Iterator[None]:
    """Redirect this process's output, including that of compiled parts, to a file."""
    duplicates = [os.dup(number) for number in (1, 2)]
    with Path(file).open("wb") as stream:
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, duplicate in zip((1, 2), duplicates, strict=True):
            os.dup2(duplicate, number)


def _output() -> str:
    """Return the output, without colours, and with names as they are in the folder."""
    text = _COLOUR.sub("", Path(OUTPUT).read_text(errors="replace"))
    return text.replace(f"{Path.cwd()}/", "")


def compile_source(name: str, level: str) -> None:
    """Import the source and write all files except the output of ptxas."""
    import cutlass
    from cuda.bindings import driver
    from cutlass import cute
    from cutlass.cute.runtime import make_ptr

    module = import_source()
    arguments = read_constant(module, "ARGUMENTS")
    host = getattr(module, name, None)
    if host is None:
        raise SourceError(f"the source has no function {name}")
    values: list[Any] = []
    for _, kind, dtype in arguments:
        if kind == "ptr":
            element = getattr(cutlass, _ELEMENTS[dtype])
            values.append(make_ptr(element, 256, cute.AddressSpace.gmem, _POINTER_ALIGNMENT))
        else:
            values.append(getattr(cutlass, _SCALARS[kind])(1))
    values.append(make_ptr(cutlass.Uint8, 256, cute.AddressSpace.gmem, _WORKSPACE_ALIGNMENT))
    values.append(driver.CUstream(0))
    host.set_name_prefix("host", remove_cutlass_symbol=True, keep_mangled_name=False)
    options = f"--opt-level {level} --keep-ptx --keep-cubin --dump-dir=. --generate-line-info"
    compiled = cute.compile(host, *values, options=f"{options} remarks{{ptx}}")
    Path(PTX).write_text(compiled.artifacts.PTX)
    Path(CUBIN).write_bytes(compiled.artifacts.CUBIN)
    compiled.export_to_c(file_path=".", file_name=OBJECT, function_prefix="kiln")
    Path(SHARED).write_text(json.dumps(shared_bytes(str(compiled.ir_module))))
    Path(HOST).write_text(exported_function(name, module))
    Path(EXPORTS).write_text(f"{{ global: {name}; local: *; }};\n")


def import_source() -> types.ModuleType:
    """Import the source as a module whose file has a relative name: the same lines in any
    folder."""
    os.utime(SOURCE, (0, 0))  # the modification time is in the line table
    module = types.ModuleType("source")
    module.__file__ = SOURCE
    sys.modules["source"] = module
    exec(compile(Path(SOURCE).read_text(), SOURCE, "exec"), module.__dict__)  # noqa: S102
    return module


def read_constant(module: types.ModuleType, name: str) -> Any:
    """Return one of the constants that every source has. Raises ``SourceError`` if it is
    missing."""
    if not hasattr(module, name):
        raise SourceError(f"the source has no {name}; it needs {', '.join(_CONSTANTS)}")
    return getattr(module, name)


def exported_function(name: str, module: types.ModuleType) -> str:
    """Return C code: checks, sizes, and one call of the object's host function."""
    arguments = read_constant(module, "ARGUMENTS")
    pointers = [arg for arg, kind, _ in arguments if kind == "ptr"]
    integers = [arg for arg, kind, _ in arguments if kind in ("i32", "i64")]
    c_parameters = [
        f"{'void*' if kind == 'ptr' else _C_SCALARS[kind]} {arg}" for arg, kind, _ in arguments
    ]
    host_parameters = ", ".join([*c_parameters, "void* workspace", "void* stream"])
    parameters = ", ".join(
        [*c_parameters, "size_t* workspace_size, uint8_t* workspace, void* stream"]
    )
    sizes = ", ".join(f"int64_t {arg}" for arg in integers) or "void"
    size_arguments = ", ".join(integers)

    def function(title: str, expression: str) -> str:
        if not isinstance(expression, str) or not _EXPRESSION.fullmatch(expression):
            raise SourceError(f"{title} is {expression!r}, not an expression of the sizes")
        return f"static int64_t {title}({sizes}) {{ return {expression}; }}"

    element_counts = read_constant(module, "ELEMENTS")
    mismatched = sorted(set(element_counts) ^ set(pointers))
    if mismatched:
        raise SourceError(f"ELEMENTS and the pointers differ in {', '.join(mismatched)}")
    lines = [
        f"#include <{HEADER}>",
        f"int kiln__mlir_ciface_host({host_parameters});",
        function("workspace_bytes", read_constant(module, "WORKSPACE")),
        function("points", read_constant(module, "POINTS")),
        *(function(f"elements_of_{arg}", element_counts[arg]) for arg in pointers),
        f"PT_EXPORT int {name}({parameters}) {{",
        "  if (workspace_size != NULL) {",
        f"    *workspace_size = (size_t)workspace_bytes({size_arguments});",
        "    return 0;",
        "  }",
        f"  if (points({size_arguments}) == 0) return 0;",
    ]
    for arg in pointers:
        lines += [
            f"  if ({arg} == NULL && elements_of_{arg}({size_arguments}) > 0)"
            " return kInvalidValue;",
            f"  if ((uintptr_t){arg} % {_POINTER_ALIGNMENT} != 0) return kInvalidValue;",
        ]
    call = ", ".join([*(arg for arg, _, _ in arguments), "workspace", "stream"])
    lines += [
        f"  if (workspace == NULL && workspace_bytes({size_arguments}) > 0) return kInvalidValue;",
        f"  if ((uintptr_t)workspace % {_WORKSPACE_ALIGNMENT} != 0) return kInvalidValue;",
        "  int status = kiln_load();",
        f"  return status != 0 ? status : kiln__mlir_ciface_host({call});",
        "}",
    ]
    return "\n".join(lines) + "\n"


def shared_bytes(host: str) -> dict[str, int]:
    """Return the shared memory that the launches of each kernel request, from the host part."""
    body = host[host.index("llvm.func @host(") :]
    values, kernels = [m[2] for m in _SHARED_FIELD.finditer(body)], _LAUNCHED.findall(body)
    if len(values) != len(kernels):
        raise SourceError(f"{len(kernels)} launches have {len(values)} sizes of shared memory")
    sizes = {}
    for kernel, value in zip(kernels, values, strict=True):
        constant = re.search(_CONSTANT.format(value), body, re.MULTILINE)
        if constant is None:
            raise SourceError(f"the shared memory of {kernel} is not known before it is launched")
        sizes[kernel] = int(constant[1])
    return sizes


def usage(output: str) -> str:
    """Return the resource usage that ptxas reported for each kernel, in its own format."""
    messages = _PTXAS.findall(output)
    lines = (
        re.sub(r"^ptxas +\. ", "    ", line) for line in messages if "Compile time" not in line
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def format_error(error: BaseException) -> str:
    """Format the error at the source line that caused it, if known, followed by the compiler's full
    message."""
    frames = traceback.extract_tb(error.__traceback__)
    line = next((f.lineno for f in reversed(frames) if Path(f.filename).name == SOURCE), None)
    text = _COLOUR.sub("", str(error)).strip() or type(error).__name__
    if isinstance(error, SyntaxError) and Path(error.filename or "").name == SOURCE:
        line, text = error.lineno, error.msg
    summary, _, details = text.partition("\n")
    message = summary if isinstance(error, SourceError) else f"{type(error).__name__}: {summary}"
    location = f"{SOURCE}:{line or 1}:1: "
    return f"{location}error: {message}\n{details}".rstrip()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
