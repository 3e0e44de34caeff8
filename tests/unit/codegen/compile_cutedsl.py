"""``python compile_cutedsl.py NAME``: compile ./source.py's host function NAME for sm_90a without a
GPU, and leave its PTX here."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

os.environ.update(CUTE_DSL_ARCH="sm_90a", CUTE_DSL_KEEP_PTX="1", CUTE_DSL_DUMP_DIR=".")
os.environ["CUTE_DSL_DISABLE_FILE_CACHING"] = "1"

import cuda.bindings.driver as cuda
import cutlass
from cutlass import cute
from cutlass.cute.runtime import make_ptr

ELEMENTS = {"f16": cutlass.Float16, "bf16": cutlass.BFloat16, "bool": cutlass.Uint8}
SCALARS = {"i32": cutlass.Int32, "i64": cutlass.Int64}


def pointer(element: type, align: int) -> object:
    return make_ptr(element, align, cute.AddressSpace.gmem, assumed_align=align)


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    source = importlib.import_module("source")
    given = [
        pointer(ELEMENTS[dtype], 16) if kind == "ptr" else SCALARS[kind](1)
        for _, kind, dtype in source.ARGUMENTS
    ]
    function = getattr(source, sys.argv[1])
    cute.compile(function, *given, pointer(cutlass.Uint8, 256), cuda.CUstream(0))
