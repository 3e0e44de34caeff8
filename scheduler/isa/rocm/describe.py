"""Short descriptions of AMD instructions, written for the names that kernels use.

Source: AMD's instruction set architecture documents of CDNA 2 to 4, RDNA 3 and 4.
"""

from __future__ import annotations

import re
from functools import lru_cache

from scheduler.isa.describe import Description, Row, look_up
from scheduler.isa.rocm.describe_vector import MATRIX, TYPE_NAMES, VECTOR

_SIZE = r"(?P<t>[us]?(?:byte|short)|dword(?:x\d+)?|[biu]\d+)(?:_d16)?(?:_hi)?"
_MEMORY: tuple[Row, ...] = (
    (
        rf"(?P<w>global|flat|buffer|scratch)_load_lds_{_SIZE}",
        "load to LDS",
        "Each lane loads {t} from {w} directly into LDS, bypassing the registers.",
    ),
    (
        rf"(?P<w>global|flat|buffer|scratch)_load_tr_{_SIZE}",
        "transposed load",
        "Loads a tile of {w} transposed, in the layout of matrix instructions.",
    ),
    (
        rf"(?P<w>global|flat|buffer|scratch)_load_(?:tr_)?(?:d16_)?(?:hi_)?{_SIZE}",
        "load",
        "Each lane reads {t} from {w}. The wave continues; a wait on the counter precedes the first"
        " use.",
    ),
    (
        rf"(?P<w>global|flat|buffer|scratch)_store_(?:d16_)?(?:hi_)?{_SIZE}",
        "store",
        "Each lane writes {t} to {w}.",
    ),
    (
        r"(?P<w>global|flat|buffer)_atomic_(?P<o>\w+?)_?(?P<t>x2|[fiub]\d+|pk_\w+)?",
        "atomic {o}",
        "Each lane updates a word of {w} atomically, in L2.",
    ),
    (
        r"(?:buffer|global)_(?:wb\w*|inv\w*|gl\w+)",
        "cache control",
        "Writes back or invalidates cache lines, to order accesses with other compute units.",
    ),
    (
        r"ds_(?:read|load)_(?P<t>[biu]\d+)(?:_d16)?(?:_hi)?",
        "LDS read",
        "Each lane reads {t} from LDS. Lanes that access the same bank in a pass are serialized.",
    ),
    (
        r"ds_(?:read|load)_2addr(?:_stride64)?_b(?P<n>\d+)|ds_read2(?:st64)?_b(?P<k>\d+)",
        "two LDS reads",
        "Each lane reads at two offsets of one address.",
    ),
    (
        r"ds_(?:read|load)_\w*tr\w*",
        "transposed LDS read",
        "Reads a tile transposed, in the layout of matrix instructions.",
    ),
    (r"ds_(?:write|store)_(?P<t>b\d+)(?:_d16_hi)?", "LDS write", "Each lane writes {t} to LDS."),
    (
        r"ds_(?:store_2addr(?:_stride64)?|write2(?:st64)?)_b(?P<n>\d+)",
        "two LDS writes",
        "Each lane writes at two offsets of one address.",
    ),
    (
        r"ds_bpermute_b32",
        "lane exchange, backward",
        "Each lane reads the value of a selected lane through the LDS crossbar; LDS memory is not"
        " accessed.",
    ),
    (
        r"ds_permute_b32",
        "lane exchange, forward",
        "Each lane sends its value to a selected lane through the LDS crossbar.",
    ),
    (r"ds_swizzle_b32", "lane exchange by a pattern", "Lanes exchange values by a fixed pattern."),
    (
        r"ds_(?P<o>add|sub|min|max|and|or|xor|inc|dec|cmpst|cmpstore|pk_add|wrxchg|storexchg)_\w+",
        "LDS atomic {o}",
        "Each lane updates a word of LDS atomically.",
    ),
    (r"ds_nop", "no operation", "Does nothing in the LDS queue."),
    (
        r"s_(?:buffer_)?load_(?P<t>dword(?:x\d+)?|b\d+|[iu]\d+)",
        "scalar load",
        "Reads {t} for the whole wave through the scalar cache: arguments and uniform values.",
    ),
    (
        r"s_memtime|s_memrealtime|s_getreg_b32",
        "read a hardware register",
        "Reads a clock or the state of the wave into an SGPR.",
    ),
)
_SCALAR: tuple[Row, ...] = (
    (
        r"s_waitcnt",
        "wait for counters",
        "Stalls the wave until at most the given number of memory instructions are pending: vmcnt"
        " for vector loads, lgkmcnt for LDS and scalar loads.",
    ),
    (
        r"s_wait_(?P<o>load|store|ds|km|sample|bvh|exp)cnt(?:_dscnt)?",
        "wait for a counter",
        "Stalls the wave until at most the given number of instructions of the counter ({o}) are"
        " pending.",
    ),
    (
        r"s_waitcnt_(?P<o>\w+)",
        "wait for a counter",
        "Stalls the wave until the counter {o} is at most the given value.",
    ),
    (
        r"s_wait_(?P<o>alu|idle|event)|s_waitcnt_depctr",
        "wait for results",
        "Stalls the wave until the results of its own pipes can be read.",
    ),
    (
        r"s_delay_alu",
        "delay",
        "Tells the scheduler how many instructions to wait for a result; other waves issue in the"
        " meantime. Takes no issue slot.",
    ),
    (
        r"s_nop",
        "no operation",
        "Does nothing for its operand plus one issue slots: for hazards that the hardware does not"
        " detect.",
    ),
    (r"s_sleep", "sleep", "The wave sleeps for 64 cycles times its operand."),
    (
        r"s_barrier(?:_signal|_wait)?",
        "barrier",
        "Waves of a block wait for each other (signal: this wave has arrived; wait: until all"
        " have).",
    ),
    (r"s_branch", "branch", "Continues at a label."),
    (
        r"s_cbranch_(?P<c>\w+)",
        "branch if {c}",
        "Continues at a label if {c}, else with the next instruction.",
    ),
    (
        r"s_endpgm(?:_saved)?",
        "end",
        "Ends the wave; its registers are freed once its stores are done.",
    ),
    (r"s_(?:setpc|swappc|call)_(?:b64|i64)", "jump", "Jumps to an address, for calls and returns."),
    (
        r"s_getpc_b64",
        "read the program counter",
        "The address of the next instruction, to address data next to the code.",
    ),
    (
        r"s_(?P<o>and|or|xor|andn2|orn2|and_not1|or_not1|nor|nand)_saveexec_b(?P<n>\d+)",
        "switch lanes",
        "Saves EXEC, the mask of active lanes, and changes it ({o}): a branch that only some lanes"
        " take.",
    ),
    (r"s_mov(?:k)?_[bi](?P<n>\d+)", "scalar move", "Copies {n} bits, or a constant, for the wave."),
    (r"s_cmov(?:k)?_[bi]\d+", "conditional move", "Copies if SCC is 1."),
    (r"s_cselect_b(?P<n>\d+)", "scalar select", "Selects one of two {n}-bit values by SCC."),
    (r"s_cmpk?_(?P<c>\w+?)_[iuf]\d+", "scalar compare: {c}", "Writes the result to SCC."),
    (r"s_bitcmp(?P<n>[01])_b\d+", "test a bit", "SCC is whether a bit is {n}."),
    (
        r"s_(?P<o>add|sub|addc|subb|addk|add_co|sub_co|add_co_ci|sub_co_ci|mul|mulk)_[iuf]\d+",
        "scalar {o}",
        "Integers or floats of the whole wave, {o}.",
    ),
    (r"s_mul_hi_[iu]32", "scalar multiply, high half", "The high half of a product."),
    (r"s_lshl(?P<n>\d)_add_u32", "shift, add", "(a << {n}) + b."),
    (
        r"s_(?P<o>and|or|xor|andn2|orn2|not|nand|nor|xnor|and_not1|or_not1)_b(?P<n>\d+)",
        "scalar {o}",
        "{o} of {n} bits: usually lane masks.",
    ),
    (
        r"s_(?:lshl|lshr)_b(?P<n>\d+)|s_ashr_i(?P<k>\d+)",
        "scalar shift",
        "Shifts a value of the wave.",
    ),
    (r"s_bfe_[iu]\d+", "extract bits", "A bit field, by offset and width."),
    (r"s_bfm_b\d+", "bit mask", "A mask of the given number of ones, shifted."),
    (r"s_brev_b\d+", "reverse bits", "Reverses the bits; also a short encoding of -2³¹."),
    (r"s_(?:bcnt1|bcnt0)_i32_b\d+", "count bits", "Counts the set (or clear) bits."),
    (r"s_(?:ff[01]|flbit|ctz|clz|cls)_\w+", "find a bit", "The position of the first such bit."),
    (r"s_(?P<o>min|max|abs|absdiff)_[iu]32", "scalar {o}", "{o} of integers of the wave."),
    (r"s_sext_i32_i(?P<n>\d+)", "extend the sign", "{n} bits as a signed 32-bit integer."),
    (r"s_pack_\w+", "pack", "Two halves into one word."),
    (r"s_wqm_b\d+|s_quadmask_b\d+", "quads", "Masks of groups of four lanes."),
    (r"s_setprio", "priority", "Sets the wave's scheduling priority on its SIMD."),
    (
        r"s_sched_barrier|s_sched_group_barrier",
        "scheduling barrier",
        "A marker for the compiler only.",
    ),
    (
        r"s_clause",
        "clause",
        "The given number of memory instructions issue without others in between. No issue slot.",
    ),
    (
        r"s_(?:set_inst_prefetch\w*|inst_prefetch|prefetch_\w+)",
        "instruction prefetch",
        "Sets how much code is prefetched. Takes no issue slot.",
    ),
    (
        r"s_sendmsg\w*",
        "message",
        "Sends a message to the hardware, for example to free registers early.",
    ),
    (
        r"s_setreg\w*",
        "write a hardware register",
        "Sets rounding, denormals and other modes of the wave.",
    ),
    (
        r"s_(?:icache_inv|dcache_\w+|code_end|trap|version|round_mode|denorm_mode)",
        "control",
        "Control of the hardware, the debugger, or the end of the code.",
    ),
)
_ROWS = (*MATRIX, *VECTOR, *_MEMORY, *_SCALAR)
_ENCODING = re.compile(r"(?:_e(?:32|64))?(?P<how>_dpp8?|_sdwa)?$")
_HOW = {
    "_dpp": " Its first operand comes from another lane of the row (DPP).",
    "_dpp8": " Its first operand comes from another lane of eight (DPP8).",
    "_sdwa": " It takes bytes or halves of its registers (SDWA).",
}


@lru_cache(maxsize=2048)
def describe(mnemonic: str) -> Description | None:
    """Describe an instruction, whatever its encoding; None for an unknown name."""
    found = _ENCODING.search(mnemonic)
    how = found["how"] if found else None
    stem = re.sub(r"(?:_e(?:32|64))?(?:_dpp8?|_sdwa)?$", "", mnemonic)
    known = look_up(_ROWS, stem, TYPE_NAMES)
    if known is None or not how:
        return known
    return Description(known.title, known.text + _HOW[how])
