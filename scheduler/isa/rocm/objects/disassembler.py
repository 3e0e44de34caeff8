"""LLVM's disassembler of AMD instructions, through its C interface (llvm-c/Disassembler.h).

The library comes from the package ``rocm-llvm-python``. It is loaded before the sandbox is entered
and used inside it.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scheduler.errors import UserError

_READERS = ("elftools", "msgpack")
_PACKAGE, _LIBRARY = "rocm-llvm-python", "rocm/llvm/librocmllvm.so"
MISSING = (
    "a code object without its listing needs AMD's disassembler, which is not installed:"
    " run pip install 'kiln[objects]'"
)
_TRIPLE = b"amdgcn-amd-amdhsa"
_LONGEST = 1024  # characters of one instruction


def library_path() -> Path:
    """Return the library's path. Raises ``UserError`` if its package is not installed."""
    try:
        distribution = importlib.metadata.distribution(_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        raise UserError(MISSING) from None
    return Path(str(distribution.locate_file(_LIBRARY)))


def require() -> None:
    """Raise ``UserError`` if a package needed to read code objects is not installed."""
    library_path()
    if not all(map(importlib.util.find_spec, _READERS)):
        raise UserError(MISSING)


def load() -> Any:
    """Load the library and enable AMD's target. Raises ``UserError`` if it cannot be loaded."""
    try:
        library = ctypes.CDLL(str(library_path()))
    except OSError as error:
        raise UserError(f"AMD's disassembler cannot be loaded: {error}") from None
    for part in ("TargetInfo", "TargetMC", "Disassembler"):
        getattr(library, f"LLVMInitializeAMDGPU{part}")()
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    library.LLVMCreateDisasmCPUFeatures.restype = pointer
    library.LLVMCreateDisasmCPUFeatures.argtypes = [
        *(text, text, text),
        *(pointer, ctypes.c_int, pointer, pointer),
    ]
    library.LLVMDisasmInstruction.restype = size
    library.LLVMDisasmInstruction.argtypes = [
        *(pointer, pointer, ctypes.c_uint64, ctypes.c_uint64),
        *(pointer, size),
    ]
    library.LLVMDisasmDispose.argtypes = [pointer]
    return library


def instructions(
    library: Any, code: bytes, processor: str, wavefront: int
) -> Iterator[tuple[int, int, str]]:
    """Yield each instruction's offset and size in bytes, and its text, mnemonic and operands
    separated by a blank; "" if the bytes are no instruction."""
    features = b"+wavefrontsize32" if wavefront == 32 else b"+wavefrontsize64"
    context = library.LLVMCreateDisasmCPUFeatures(
        _TRIPLE, processor.encode(), features, None, 0, None, None
    )
    if not context:
        raise UserError(f"AMD's disassembler does not know {processor}")
    buffer = ctypes.create_string_buffer(code, len(code))
    begin, out = ctypes.addressof(buffer), ctypes.create_string_buffer(_LONGEST)
    offset = 0
    while offset + 4 <= len(code):
        size = library.LLVMDisasmInstruction(
            context, begin + offset, len(code) - offset, offset, out, _LONGEST
        )
        text = " ".join(out.value.decode("ascii", "replace").split()) if size else ""
        yield offset, size or 4, text
        offset += size or 4
    library.LLVMDisasmDispose(context)
