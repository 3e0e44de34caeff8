"""Times shared_memory.hip and global_memory.hip on an NVIDIA GPU, with the driver alone.

    python -m tests.benchmarks.cycles.h200 build FOLDER     here: PTX of both, and this file
    python FOLDER/h200.py run FOLDER > h200.json            there: needs Python and the driver

The second needs no package and no network: the folder is all that it reads. What comes out is kept
as data/h200.json, which ``python -m tests.benchmarks.cycles`` holds the model's ranking against.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any

SHARED = [f"shared_w{width}_s{stride}" for width, stride in (
    *((1, each) for each in (1, 2, 4, 8, 16, 32, 33)),
    *((width, each) for width in (2, 4) for each in (1, 2, 4, 8)),
)]  # fmt: skip
STRIDED = [f"global_s{stride}" for stride in (1, 2, 4, 8)]
ELEMENTS = 1 << 26  # floats of global_memory.hip
ROUNDS = 4000
SAMPLES, WARM_UP = 30, 5
THREADS = 256


def build(folder: Path) -> None:
    """PTX of both sources for sm_90, by the bundled compiler."""
    from scheduler import targets
    from scheduler.build.cache import CodeCache
    from scheduler.build.compile import build as build_library
    from scheduler.build.flags import Flags
    from scheduler.build.model import Build
    from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain

    folder.mkdir(parents=True, exist_ok=True)
    cache = CodeCache(folder.absolute() / "cache")
    target = targets.find("sm_90")
    search = Search(Path("/opt/rocm"), "", cache)
    toolchain = pick_toolchain(find_target_toolchains(target, search), target, "source.hip")
    for name in ("shared_memory", "global_memory"):
        source = Path(__file__).with_name(f"{name}.hip").read_text()
        result = build_library(source, "none", target, toolchain, cache, Flags())
        if not isinstance(result, Build):
            sys.exit(f"{name}: {result.reason}\n{result.detail}")
        shutil.copy(result.directory / "kernel.ptx", folder / f"{name}.ptx")
    shutil.copy(__file__, folder / "h200.py")
    shutil.rmtree(folder / "cache")


class Driver:
    """NVIDIA's driver, as much of it as launches and times a kernel."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", 0)
        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(100)
        self._call("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()
        units = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(units), 16, device)  # multiprocessors
        self.multiprocessors = units.value
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        self.start, self.stop = ctypes.c_void_p(), ctypes.c_void_p()
        for event in (self.start, self.stop):
            self._call("cuEventCreate", ctypes.byref(event), 0)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            sys.exit(f"{name} failed with {status}")

    def module(self, text: bytes) -> ctypes.c_void_p:
        found = ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(found), ctypes.c_char_p(text))
        return found

    def function(self, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        found = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(found), module, name.encode())
        return found

    def memory(self, size: int) -> ctypes.c_uint64:
        found = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(found), ctypes.c_size_t(size))
        self._call("cuMemsetD8_v2", found, ctypes.c_ubyte(0), ctypes.c_size_t(size))
        return found

    def microseconds(self, function: ctypes.c_void_p, blocks: int, *arguments: Any) -> float:
        """Of one launch, by events."""
        pointers = (ctypes.c_void_p * len(arguments))(
            *(ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in arguments)
        )
        self._call("cuEventRecord", self.start, None)
        grid, block = (blocks, 1, 1), (THREADS, 1, 1)
        self._call("cuLaunchKernel", function, *grid, *block, 0, None, pointers, None)
        self._call("cuEventRecord", self.stop, None)
        self._call("cuEventSynchronize", self.stop)
        elapsed = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(elapsed), self.start, self.stop)
        return elapsed.value * 1e3


def run(folder: Path) -> dict[str, Any]:
    """The median of each kernel's times, with their least and most, in microseconds."""
    driver = Driver()
    source, result = driver.memory(4 * ELEMENTS), driver.memory(4 * ELEMENTS)
    shared = driver.module((folder / "shared_memory.ptx").read_bytes() + b"\0")
    memory = driver.module((folder / "global_memory.ptx").read_bytes() + b"\0")
    rounds, full = ctypes.c_int(ROUNDS), driver.multiprocessors * 4
    plans: list[tuple[str, ctypes.c_void_p, int, tuple[Any, ...]]] = [
        (name, driver.function(shared, name), full, (result, rounds)) for name in SHARED
    ]
    plans += [
        (name, driver.function(memory, name), ELEMENTS // THREADS, (source, result))
        for name in STRIDED
    ]
    plans.append(
        (
            "global_b16",
            driver.function(memory, "global_b16"),
            2 * ELEMENTS // THREADS,
            (source, result),
        )
    )
    plans.append(
        (
            "global_b128",
            driver.function(memory, "global_b128"),
            ELEMENTS // 4 // THREADS,
            (source, result),
        )
    )
    times: dict[str, list[float]] = {name: [] for name, *_ in plans}
    for sample in range(WARM_UP + SAMPLES):  # all of them in turn: none has a clock of its own
        for name, function, blocks, arguments in plans:
            found = driver.microseconds(function, blocks, *arguments)
            if sample >= WARM_UP:
                times[name].append(found)
    return {
        "device": driver.name,
        "multiprocessors": driver.multiprocessors,
        "rounds": ROUNDS,
        "elements": ELEMENTS,
        "samples": SAMPLES,
        "microseconds": {
            name: {
                "median": round(statistics.median(each), 2),
                "least": round(min(each), 2),
                "most": round(max(each), 2),
            }
            for name, each in times.items()
        },
    }


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in {"build", "run"}:
        sys.exit(__doc__)
    if sys.argv[1] == "build":
        build(Path(sys.argv[2]))
    else:
        sys.stdout.write(json.dumps(run(Path(sys.argv[2])), indent=2) + "\n")
