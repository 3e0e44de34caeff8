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
        "Each lane's {t} go from {w} straight to LDS, past the registers.",
    ),
    (
        rf"(?P<w>global|flat|buffer|scratch)_load_tr_{_SIZE}",
        "transposed load",
        "A tile of {w} comes in with rows and columns exchanged, as matrix instructions want it.",
    ),
    (
        rf"(?P<w>global|flat|buffer|scratch)_load_(?:tr_)?(?:d16_)?(?:hi_)?{_SIZE}",
        "load",
        "Each lane"
        " reads {t} from {w}. The wave goes on; a wait for its counter stands before the"
        " first use.",
    ),
    (
        rf"(?P<w>global|flat|buffer|scratch)_store_(?:d16_)?(?:hi_)?{_SIZE}",
        "store",
        "Each lane writes {t} to {w}.",
    ),
    (
        r"(?P<w>global|flat|buffer)_atomic_(?P<o>\w+?)_?(?P<t>x2|[fiub]\d+|pk_\w+)?",
        "atomic {o}",
        "Each lane changes a word of {w} in one step, done in L2.",
    ),
    (
        r"(?:buffer|global)_(?:wb\w*|inv\w*|gl\w+)",
        "cache control",
        "Writes back or drops lines of a cache: for ordering with other compute units.",
    ),
    (
        r"ds_(?:read|load)_(?P<t>[biu]\d+)(?:_d16)?(?:_hi)?",
        "LDS read",
        "Each lane reads {t} from LDS."
        " Lanes of a pass that meet in a bank are served one after the other.",
    ),
    (
        r"ds_(?:read|load)_2addr(?:_stride64)?_b(?P<n>\d+)|ds_read2(?:st64)?_b(?P<k>\d+)",
        "two LDS reads",
        "Each lane reads at two offsets of one address.",
    ),
    (
        r"ds_(?:read|load)_\w*tr\w*",
        "transposed LDS read",
        "A tile comes in with rows and columns exchanged, as matrix instructions want it.",
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
        "Each lane takes the value of the lane that it"
        " names, by LDS's crossbar; no memory is touched.",
    ),
    (
        r"ds_permute_b32",
        "lane exchange, forward",
        "Each lane sends its value to the lane that it names, by LDS's crossbar.",
    ),
    (r"ds_swizzle_b32", "lane exchange by a pattern", "Lanes exchange values by a fixed pattern."),
    (
        r"ds_(?P<o>add|sub|min|max|and|or|xor|inc|dec|cmpst|cmpstore|pk_add|wrxchg|storexchg)_\w+",
        "LDS atomic {o}",
        "Each lane changes a word of LDS in one step.",
    ),
    (r"ds_nop", "nothing", "Does nothing in LDS's queue."),
    (
        r"s_(?:buffer_)?load_(?P<t>dword(?:x\d+)?|b\d+|[iu]\d+)",
        "scalar load",
        "Reads {t} for the whole wave, by the scalar cache: arguments and what all lanes share.",
    ),
    (
        r"s_memtime|s_memrealtime|s_getreg_b32",
        "read a hardware register",
        "A clock or a state of the wave, into an SGPR.",
    ),
)
_SCALAR: tuple[Row, ...] = (
    (
        r"s_waitcnt",
        "wait for counters",
        "Holds the wave until so many memory instructions at most are"
        " under way: vmcnt vector loads, lgkmcnt LDS and scalar loads.",
    ),
    (
        r"s_wait_(?P<o>load|store|ds|km|sample|bvh|exp)cnt(?:_dscnt)?",
        "wait for a counter",
        "Holds the wave until at most so many instructions of that counter are under way ({o}).",
    ),
    (
        r"s_waitcnt_(?P<o>\w+)",
        "wait for a counter",
        "Holds the wave until the counter {o} is so low.",
    ),
    (
        r"s_wait_(?P<o>alu|idle|event)|s_waitcnt_depctr",
        "wait for results",
        "Holds the wave until results of its own pipes may be read.",
    ),
    (
        r"s_delay_alu",
        "delay",
        "Tells the scheduler after how many instructions results are there: the"
        " wave steps aside meanwhile. Takes no slot.",
    ),
    (
        r"s_nop",
        "nothing",
        "Does nothing for one slot more than its operand says: for hazards that the"
        " hardware does not watch.",
    ),
    (r"s_sleep", "sleep", "The wave rests for 64 cycles times its operand."),
    (
        r"s_barrier(?:_signal|_wait)?",
        "barrier",
        "Waves of a block wait for each other (signal: says"
        " that this one has arrived; wait: until all have).",
    ),
    (r"s_branch", "branch", "Goes on at a label."),
    (
        r"s_cbranch_(?P<c>\w+)",
        "branch if {c}",
        "Goes on at a label where {c}, else with the next instruction.",
    ),
    (
        r"s_endpgm(?:_saved)?",
        "end",
        "The wave is done; its registers are free once its stores are.",
    ),
    (r"s_(?:setpc|swappc|call)_(?:b64|i64)", "jump", "Goes to an address, for calls and returns."),
    (
        r"s_getpc_b64",
        "read the program counter",
        "The address of the next instruction: for data that lie beside the code.",
    ),
    (
        r"s_(?P<o>and|or|xor|andn2|orn2|and_not1|or_not1|nor|nand)_saveexec_b(?P<n>\d+)",
        "switch lanes",
        "Saves EXEC, the mask of lanes that are on, and changes it ({o}): a branch that"
        " only some lanes take.",
    ),
    (r"s_mov(?:k)?_[bi](?P<n>\d+)", "scalar move", "Copies {n} bits, or a constant, for the wave."),
    (r"s_cmov(?:k)?_[bi]\d+", "conditional move", "Copies where SCC is 1."),
    (r"s_cselect_b(?P<n>\d+)", "scalar select", "One of two values of {n} bits, by SCC."),
    (r"s_cmpk?_(?P<c>\w+?)_[iuf]\d+", "scalar compare: {c}", "Puts the answer into SCC."),
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
        "{o} of {n} bits: masks of lanes, mostly.",
    ),
    (
        r"s_(?:lshl|lshr)_b(?P<n>\d+)|s_ashr_i(?P<k>\d+)",
        "scalar shift",
        "Shifts a value of the wave.",
    ),
    (r"s_bfe_[iu]\d+", "extract bits", "Some bits, by offset and width."),
    (r"s_bfm_b\d+", "bit mask", "A mask of so many ones, shifted."),
    (r"s_brev_b\d+", "reverse bits", "Bits in the other order; also a short way to write -2³¹."),
    (r"s_(?:bcnt1|bcnt0)_i32_b\d+", "count bits", "How many bits are set (or not)."),
    (r"s_(?:ff[01]|flbit|ctz|clz|cls)_\w+", "find a bit", "Where the first such bit stands."),
    (r"s_(?P<o>min|max|abs|absdiff)_[iu]32", "scalar {o}", "{o} of integers of the wave."),
    (r"s_sext_i32_i(?P<n>\d+)", "extend the sign", "{n} bits as a signed 32-bit integer."),
    (r"s_pack_\w+", "pack", "Two halves into one word."),
    (r"s_wqm_b\d+|s_quadmask_b\d+", "quads", "Masks of groups of four lanes."),
    (r"s_setprio", "priority", "Sets which waves of a SIMD the scheduler prefers."),
    (
        r"s_sched_barrier|s_sched_group_barrier",
        "scheduling barrier",
        "A mark for the compiler alone.",
    ),
    (
        r"s_clause",
        "clause",
        "The next so many memory instructions are issued without others between. Takes no slot.",
    ),
    (
        r"s_(?:set_inst_prefetch\w*|inst_prefetch|prefetch_\w+)",
        "prefetch of code",
        "How much code is fetched ahead. Takes no slot.",
    ),
    (
        r"s_sendmsg\w*",
        "message",
        "Sends a message to the hardware: frees registers before the end.",
    ),
    (
        r"s_setreg\w*",
        "write a hardware register",
        "Rounding, denormals and other modes of the wave.",
    ),
    (
        r"s_(?:icache_inv|dcache_\w+|code_end|trap|version|round_mode|denorm_mode)",
        "control",
        "For the hardware, the debugger or the end of the code.",
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
