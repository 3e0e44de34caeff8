"""Compiles data/gemm.py with Triton for AMD's GPUs, on any machine: no GPU is needed.

    pip install --target /tmp/site --no-deps triton==3.9.0
    PYTHONPATH=/tmp/site python tests/benchmarks/cycles/make_gemm.py

writes data/gemm-*.hsaco anew, with debug lines that name /tmp/kernels/gemm.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

DATA = Path(__file__).with_name("data")
KERNELS = Path("/tmp/kernels")
SIGNATURE = {
    **dict.fromkeys("abc", "*fp16"),
    **dict.fromkeys(("m", "n", "k", "lda", "ldb", "ldc"), "i32"),
    **dict.fromkeys(("TRANSPOSED", "BM", "BN", "BK", "GROUP"), "constexpr"),
}
TILES = {"BM": 256, "BN": 256, "BK": 64, "GROUP": 8}
OPTIONS = {"num_warps": 8, "num_stages": 2, "matrix_instr_nonkdim": 16}


def main() -> None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    KERNELS.mkdir(exist_ok=True)
    (KERNELS / "gemm.py").write_text((DATA / "gemm.py").read_text())
    sys.path.insert(0, str(KERNELS))
    from gemm import gemm  # type: ignore[import-not-found]

    names = list(SIGNATURE)
    aligned = {(names.index(name),): [["tt.divisibility", 16]] for name in names[:9]}
    for processor in ("gfx942", "gfx950"):
        for transposed in (False, True):
            constants = {"TRANSPOSED": transposed, **TILES}
            given = {(names.index(name),): value for name, value in constants.items()}
            source = ASTSource(fn=gemm, signature=SIGNATURE, constexprs=given, attrs=aligned)
            made = triton.compile(source, target=GPUTarget("hip", processor, 64), options=OPTIONS)
            name = f"gemm-{'column' if transposed else 'row'}-major-b-{processor}.hsaco"
            (DATA / name).write_bytes(made.asm["hsaco"])
            sys.stdout.write(f"{name}: {made.metadata.shared} bytes of LDS\n")


if __name__ == "__main__":
    main()
