"""A library for a GPU, loaded beside a HIP runtime that only notes what is asked of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.flags import Flags
from scheduler.build.model import Build, Toolchain
from scheduler.build.rocm.commands import host_compiler
from scheduler.build.rocm.offload_bundle import unpack
from scheduler.build.sandbox_paths import toolchain_sandbox
from scheduler.sandbox.process import Limits, run
from tests.unit.build.sources import ADD

RUNTIME = r"""
#include <stdio.h>
#include <string.h>
typedef struct { unsigned x, y, z; } dim3;
static dim3 grid, block; static size_t lds; static void *stream;
struct wrapper { unsigned magic, version; const char *binary; void *unused; };
void **__hipRegisterFatBinary(const struct wrapper *w) {
  printf("register %x %u %.24s\n", w->magic, w->version, w->binary);
  static void *handle; return &handle;
}
void __hipRegisterFunction(void **h, const void *f, char *name, const char *device, unsigned n,
                           void *a, void *b, void *c, void *d, int *e) {
  printf("function %s\n", device);
}
void __hipUnregisterFatBinary(void **h) { printf("unregister\n"); fflush(stdout); }
int __hipPushCallConfiguration(dim3 g, dim3 b, size_t l, void *s) {
  grid = g; block = b; lds = l; stream = s; return 0;
}
int __hipPopCallConfiguration(dim3 *g, dim3 *b, size_t *l, void **s) {
  *g = grid; *b = block; *l = lds; *s = stream; return 0;
}
int hipLaunchKernel(const void *f, dim3 g, dim3 b, void **args, size_t l, void *s) {
  printf("launch %u %u %u, %u %u %u, %zu, stream %p: %p %p %d\n", g.x, g.y, g.z, b.x, b.y, b.z, l,
         s, *(void **)args[0], *(void **)args[1], *(int *)args[2]);
  return 0;
}
int hipGetLastError(void) { return 7; }
"""

SCRIPT = """
import ctypes, sys, _ctypes
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
library = ctypes.CDLL(sys.argv[2])
def call(n, size=None):
    pointers = [ctypes.c_void_p(each) for each in (0x1000, 0x2000)]
    return library.add_one(*pointers, n, size, None, ctypes.c_void_p(0x77))
size = ctypes.c_size_t(99)
print("query", call(1000, ctypes.byref(size)), size.value, flush=True)
print("empty", call(0), flush=True)
print("status", call(1000), flush=True)
_ctypes.dlclose(library._handle)
print("closed", flush=True)
"""


def test_it_registers_launches_and_unregisters(
    toolchain: Toolchain, shared_cache: CodeCache, tmp_path: Path
) -> None:
    result = build(ADD, "add_one", targets.find("gfx942"), toolchain, shared_cache)
    assert isinstance(result, Build)
    (tmp_path / "hip.c").write_text(RUNTIME)
    compiler = host_compiler(toolchain, Flags())
    command = (*compiler, "-shared", "-o", "libamdhip64.so", "hip.c")
    zig = str(shared_cache.compiler_cache())
    environment = {"ZIG_GLOBAL_CACHE_DIR": zig, "ZIG_LOCAL_CACHE_DIR": str(tmp_path / "zig")}
    fence = toolchain_sandbox(toolchain, tmp_path, Path(zig))
    made = run(command, tmp_path, environment, Limits(seconds=300), policy=fence)
    assert made.ok, made.output
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "libamdhip64.so", result.directory / "kernel.so"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line]
    assert sorted(lines) == sorted(
        [
            "register 48495046 1 __CLANG_OFFLOAD_BUNDLE__",
            "function _Z3addPKfPfi",
            "query 0 0",
            "empty 0",
            "launch 4 1 1, 256 1 1, 0, stream 0x77: 0x1000 0x2000 1000",
            "status 7",
            "unregister",
            "closed",
        ]
    )
    # When it is closed, not when the process ends and the code is gone.
    assert lines.index("unregister") < lines.index("closed")


def test_the_code_object_in_the_library_is_the_one_beside_it(
    toolchain: Toolchain, shared_cache: CodeCache
) -> None:
    result = build(ADD, "add_one", targets.find("gfx1100"), toolchain, shared_cache)
    assert isinstance(result, Build)
    library = (result.directory / "kernel.so").read_bytes()
    bundle = library[library.index(b"__CLANG_OFFLOAD_BUNDLE__") :]
    assert unpack(bundle) == {"gfx1100": (result.directory / "kernel.hsaco").read_bytes()}
