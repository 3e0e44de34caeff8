"""Kernels of a few instructions, as listings, run by the emulator."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.emulator.limits import Limits
from scheduler.isa.rocm.emulator.memory import Memory
from scheduler.isa.rocm.emulator.program import Program, program_of
from scheduler.isa.rocm.emulator.run import EmulationResult, run

OUT, IN = 0x100_0000, 0x200_0000
SIZE = 1 << 16

_LISTING = """\
\t.amdgcn_target "amdgcn-amd-amdhsa--{processor}"
\t.text
\t.type\tk,@function
k:
{body}
\ts_endpgm
\t.section\t.rodata,"a",@progbits
\t.amdhsa_kernel k
\t\t.amdhsa_group_segment_fixed_size {lds}
\t\t.amdhsa_private_segment_fixed_size {scratch}
\t\t.amdhsa_kernarg_size 24
\t\t.amdhsa_user_sgpr_count 2
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t\t.amdhsa_system_sgpr_workgroup_id_x 1
\t\t.amdhsa_system_vgpr_workitem_id {ids}
{further}
\t\t.amdhsa_next_free_vgpr 128
\t\t.amdhsa_next_free_sgpr 96
\t.end_amdhsa_kernel
\t.text
.Lfunc_end0:
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
        .offset:         8
        .size:           8
        .value_kind:     global_buffer
      - .offset:         16
        .size:           4
        .value_kind:     by_value
      - .offset:         20
        .size:           4
        .value_kind:     hidden_block_count_x
    .kernarg_segment_size: 24
    .name:           k
    .symbol:         k.kd
amdhsa.target:   amdgcn-amd-amdhsa--{processor}
...
\t.end_amdgpu_metadata
"""


@dataclass(frozen=True)
class Done:
    """What a kernel left: memory's words at ``OUT``, and the run."""

    memory: Memory
    run: EmulationResult

    def words(self, count: int, at: int = 0, dtype: str = "<u4") -> npt.NDArray[np.generic]:
        size = np.dtype(dtype).itemsize
        return np.frombuffer(self.memory.read(OUT + at, count * size), dtype)


def listing(
    body: str, processor: str = "gfx942", lds: int = 0, scratch: int = 0, ids: int = 0
) -> str:
    """``body``: instructions and labels, one a line."""
    lines = [
        line.strip() if line.strip().endswith(":") else "\t" + line.strip()
        for line in body.strip().splitlines()
    ]
    further = "\t\t.amdhsa_wavefront_size32 1"
    if processor.startswith("gfx9"):
        further = "\t\t.amdhsa_accum_offset 64"
        if processor == "gfx90a":
            further += "\n\t\t.amdhsa_user_sgpr_private_segment_buffer 0"
    return _LISTING.format(
        processor=processor,
        body="\n".join(lines),
        lds=lds,
        scratch=scratch,
        ids=ids,
        further=further,
    )


@cache
def assemble(text: str, processor: str) -> str:
    """What the real assembler has against a listing; "" for nothing."""
    code = re.sub(r"\t\.amdgpu_metadata.*?\.end_amdgpu_metadata\n", "", text, flags=re.DOTALL)
    arguments = ["-triple", "amdgcn-amd-amdhsa", "-target-cpu", processor, "-filetype", "obj"]
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", "clang", "-cc1as", *arguments, "-o", "/dev/null", "-"],
        input=code,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stderr if done.returncode else ""


def program(body: str, processor: str = "gfx942", **more: int) -> Program:
    return program_of(listing(body, processor, **more), "k")


def execute(
    body: str,
    data: npt.NDArray[np.generic] | bytes = b"",
    *,
    processor: str = "gfx942",
    threads: int = 64,
    grid: int = 1,
    blocks: Sequence[int] = (0,),
    scalar: int = 0,
    lds: int = 0,
    scratch: int = 0,
    limits: Limits = Limits(),
    values: bool = True,
    real: bool = True,
    block: tuple[int, int, int] | None = None,
    ids: int = 0,
    dynamic_lds: int = 0,
) -> Done:
    """Run the kernel ``k(OUT, IN, scalar)``: s[0:1] are its arguments' address, s2 the block, v0
    the thread. ``data`` lies at IN. ``real``: the assembler must take the kernel too."""
    if real:
        text = listing(body, processor, lds, scratch, ids)
        assert not assemble(text, processor)
    memory = Memory()
    memory.map("out", OUT, SIZE)
    memory.map("in", IN, SIZE, bytes(data) if isinstance(data, bytes) else data.tobytes())
    size = block or (threads, 1, 1)
    launch = Launch("k", (grid, 1, 1), size, dynamic_lds, (OUT, IN, scalar))
    kernel = program(body, processor, lds=lds, scratch=scratch, ids=ids)
    return Done(memory, run(kernel, launch, memory, blocks, limits, values))


LOAD = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
s_load_dword s8, s[0:1], 0x10
s_waitcnt lgkmcnt(0)
v_lshlrev_b32_e32 v1, 2, v0
global_load_dword v2, v1, s[6:7]
s_waitcnt vmcnt(0)
"""
"""s[4:5] is OUT, s[6:7] IN, s8 the scalar, v1 the thread's offset, v2 its word of IN."""

STORE = "global_store_dword v1, v3, s[4:5]"
"""v3 to the thread's word of OUT."""
