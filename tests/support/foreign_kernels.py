"""A small kernel of somebody else's: each thread doubles a float."""

from __future__ import annotations

from functools import cache

from codegen_app.kernels.models import ForeignKernel
from codegen_app.platform import artifacts
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.cycles import report_json
from scheduler.cycles.kernel_file import KernelFile, model_file
from scheduler.cycles.launches.parser import read_launch
from scheduler.cycles.report import VERSION, Report

LISTING = """\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
\t.text
\t.type\tdouble,@function
double:
\ts_load_dwordx4 s[4:7], s[0:1], 0x0
\tv_lshl_add_u32 v1, s2, 6, v0
\tv_lshlrev_b32_e32 v1, 2, v1
\ts_waitcnt lgkmcnt(0)
\tglobal_load_dword v2, v1, s[4:5]
\ts_waitcnt vmcnt(0)
\tv_add_f32_e32 v2, v2, v2
\tglobal_store_dword v1, v2, s[6:7]
\ts_endpgm
.Lfunc_end0:
\t.amdhsa_kernel double
\t\t.amdhsa_group_segment_fixed_size 0
\t\t.amdhsa_kernarg_size 16
\t\t.amdhsa_user_sgpr_count 2
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t\t.amdhsa_system_sgpr_workgroup_id_x 1
\t\t.amdhsa_next_free_vgpr 4
\t\t.amdhsa_next_free_sgpr 8
\t\t.amdhsa_accum_offset 4
\t.end_amdhsa_kernel
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .args:
      - .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .offset:         8
        .size:           8
        .value_kind:     global_buffer
    .group_segment_fixed_size: 0
    .kernarg_segment_size: 16
    .max_flat_workgroup_size: 64
    .name:           double
    .sgpr_count:     8
    .vgpr_count:     4
    .wavefront_size: 64
...
\t.end_amdgpu_metadata
"""
#: The same, doubling as often as the second of three numbers says that are one argument by value,
#: as HIP's dim3 is.
LOOPING = (
    LISTING.replace("v1, s[4:5]\n", "v1, s[4:5]\n\ts_load_dword s8, s[0:1], 0x14\n")
    .replace("s_waitcnt vmcnt(0)\n", "s_waitcnt vmcnt(0) lgkmcnt(0)\n.LBB0_1:\n")
    .replace(
        "v2, v2, v2\n",
        "v2, v2, v2\n\ts_add_i32 s8, s8, -1\n\ts_cmp_lg_u32 s8, 0\n\ts_cbranch_scc1 .LBB0_1\n",
    )
    .replace("next_free_sgpr 8", "next_free_sgpr 9")
    .replace("kernarg_size 16", "kernarg_size 28")
    .replace("kernarg_segment_size: 16", "kernarg_segment_size: 28")
    .replace(
        "    .group_segment_fixed_size: 0\n",
        "      - .offset:         16\n        .size:           12\n"
        "        .value_kind:     by_value\n    .group_segment_fixed_size: 0\n",
    )
)
_BUFFER = '{"buffer": "float32", "elements": 65536}'
LAUNCH = f'{{"grid": [1024], "block": [64], "arguments": [{_BUFFER}, {_BUFFER}]}}'


def looping_launch(times: str) -> str:
    """Of ``LOOPING``: its third argument as JSON."""
    return LAUNCH.replace(f"{_BUFFER}]", f"{_BUFFER}, {times}]")


@cache
def report() -> Report:
    """What the model says of it."""
    target = targets.find("gfx942")
    kernels = KernelFile("double.s", LISTING, ("double",))
    return model_file(kernels, target, targets.boards("gfx942")[0], read_launch(LAUNCH))


def looked_at(name: str = "double.s") -> ForeignKernel:
    """A row that a worker has done."""
    said = report()
    return ForeignKernel.objects.create(
        name=name,
        file=artifacts.store(LISTING.encode(), ".kernel"),
        launch=LAUNCH,
        target="gfx942",
        board=said.board,
        state=State.DONE,
        function="double",
        version=VERSION,
        listing=artifacts.store(LISTING.encode(), ".s"),
        report=artifacts.store(report_json.write(said), ".json"),
        low_us=said.time_us.low,
        time_us=said.time_us.mid,
        high_us=said.time_us.high,
        sentence=said.sentence,
    )
