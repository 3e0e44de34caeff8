"""Rows of the scalar unit's instructions, of waits, branches and hints."""

from __future__ import annotations

from scheduler.isa.instructions import Kind
from scheduler.isa.rocm.instruction_set.row import Counter, Effect, IssueClass, Row


def _wait(
    pattern: str,
    title: str,
    text: str,
    *counters: Counter,
    issue: IssueClass = IssueClass.WAIT,
) -> Row:
    """A wait for counters, or for what the model does not count."""
    return Row(pattern, title, text, Kind.WAIT, issue, Effect.NOTHING, counters=counters)


def _hint(pattern: str, title: str = "", text: str = "", *, is_free: bool = False) -> Row:
    """An instruction that changes no values."""
    issue = IssueClass.FREE if is_free else IssueClass.SCALAR
    return Row(pattern, title, text, issue=issue, effect=Effect.NOTHING)


_STALLS = (
    "Stalls the wave until at most the given number of instructions of the counter ({o}) are"
    " pending."
)
SCALAR: tuple[Row, ...] = (
    _wait(
        r"s_waitcnt",
        "wait for counters",
        "Stalls the wave until at most the given number of memory instructions are pending: vmcnt"
        " for vector loads, lgkmcnt for LDS and scalar loads.",
        Counter.LOADS,
        Counter.LDS,
    ),
    *(
        _wait(f"s_wait_(?P<o>{name})cnt{pair}", "wait for a counter", _STALLS, *counters)
        for name, pair, counters in (
            ("load", "", (Counter.LOADS,)),
            ("store", "", (Counter.STORES,)),
            ("ds", "", (Counter.LDS,)),
            ("km", "", (Counter.SCALARS,)),
            ("load", "_dscnt", (Counter.LOADS, Counter.LDS)),
            ("store", "_dscnt", (Counter.STORES, Counter.LDS)),
            ("sample|bvh", "", ()),  # of graphics
        )
    ),
    _wait(r"s_wait_(?P<o>exp)cnt", "wait for a counter", _STALLS, issue=IssueClass.FREE),
    *(
        _wait(
            f"s_waitcnt_(?P<o>{name})",
            "wait for a counter",
            "Stalls the wave until the counter {o} is at most the given value.",
            *counters,
        )
        for name, counters in (
            ("vmcnt", (Counter.LOADS,)),
            ("vscnt", (Counter.STORES,)),
            ("lgkmcnt", (Counter.LDS,)),
            ("expcnt", ()),
        )
    ),
    _wait(
        r"s_wait_(?P<o>alu|idle|event)|s_waitcnt_depctr",
        "wait for results",
        "Stalls the wave until the results of its own pipes can be read.",
        issue=IssueClass.FREE,
    ),
    _wait(r"s_wait_\w+", "", "", issue=IssueClass.FREE),
    _wait(
        r"s_delay_alu",
        "delay",
        "Tells the scheduler how many instructions to wait for a result; other waves issue in the"
        " meantime. Takes no issue slot.",
        issue=IssueClass.FREE,
    ),
    Row(
        r"s_nop",
        "no operation",
        "Does nothing for its operand plus one issue slots: for hazards that the hardware does not"
        " detect.",
        Kind.WAIT,
        IssueClass.PAUSE,
        Effect.NOTHING,
    ),
    Row(
        r"s_sleep",
        "sleep",
        "The wave sleeps for 64 cycles times its operand.",
        Kind.WAIT,
        IssueClass.PAUSE,
        Effect.NOTHING,
    ),
    Row(r"s_sleep_var", kind=Kind.WAIT, effect=Effect.NOTHING),
    *(
        Row(
            pattern,
            "barrier",
            "Waves of a block wait for each other (signal: this wave has arrived; wait: until all"
            " have).",
            Kind.WAIT,
            issue,
            effect,
        )
        for pattern, issue, effect in (
            (r"s_barrier(?:_wait)?", IssueClass.BARRIER, Effect.BARRIER),
            (r"s_barrier_signal", IssueClass.FREE, Effect.NOTHING),
        )
    ),
    Row(r"s_barrier_(?:signal_isfirst|leave)", kind=Kind.WAIT, effect=Effect.NOTHING),
    Row(r"s_barrier_(?:init|join)", kind=Kind.WAIT),
    Row(
        r"s_branch",
        "branch",
        "Continues at a label.",
        Kind.BRANCH,
        IssueClass.BRANCH,
        Effect.JUMPS,
    ),
    Row(
        r"s_cbranch_(?P<c>\w+)",
        "branch if {c}",
        "Continues at a label if {c}, else with the next instruction.",
        Kind.BRANCH,
        IssueClass.BRANCH,
        Effect.BRANCHES,
    ),
    Row(
        r"s_endpgm(?:_saved)?",
        "end",
        "Ends the wave; its registers are freed once its stores are done.",
        Kind.BRANCH,
        IssueClass.END,
        Effect.ENDS,
    ),
    Row(r"s_endpgm\w*", "", "", Kind.BRANCH, IssueClass.END, Effect.ENDS),
    *(
        Row(
            f"s_(?:{names})_(?:b64|i64)",
            "jump",
            "Jumps to an address, for calls and returns.",
            Kind.BRANCH,
            IssueClass.BRANCH,
            effect,
        )
        for names, effect in (("setpc", Effect.JUMPS), ("swappc|call", Effect.CALLS))
    ),
    Row(r"s_(?:sethalt|rfe)\w*", effect=Effect.CALLS),
    Row(
        r"s_(?:buffer_)?load_(?P<t>dword(?:x\d+)?|b\d+|[iu]\d+)",
        "scalar load",
        "Reads {t} for the whole wave through the scalar cache: arguments and uniform values.",
        issue=IssueClass.SCALAR_LOAD,
    ),
    Row(r"s_(?:buffer_)?(?:load|store|atomic)\w*", issue=IssueClass.SCALAR_LOAD),
    *(
        Row(
            pattern,
            "read a hardware register",
            "Reads a clock or the state of the wave into an SGPR.",
            issue=issue,
        )
        for pattern, issue in (
            (r"s_memtime", IssueClass.SCALAR_LOAD),
            (r"s_memrealtime|s_getreg_b32", IssueClass.SCALAR),
        )
    ),
    Row(
        r"s_getpc_b64",
        "read the program counter",
        "The address of the next instruction, to address data next to the code.",
    ),
    Row(
        r"s_(?P<o>and|or|xor|andn2|orn2|and_not1|or_not1|nor|nand)_saveexec_b(?P<n>\d+)",
        "switch lanes",
        "Saves EXEC, the mask of active lanes, and changes it ({o}): a branch that only some lanes"
        " take.",
    ),
    Row(
        r"s_mov(?:k)?_[bi](?P<n>\d+)",
        "scalar move",
        "Copies {n} bits, or a constant, for the wave.",
    ),
    Row(r"s_cmov(?:k)?_[bi]\d+", "conditional move", "Copies if SCC is 1."),
    Row(r"s_cselect_b(?P<n>\d+)", "scalar select", "Selects one of two {n}-bit values by SCC."),
    Row(r"s_cmpk?_(?P<c>\w+?)_[iuf]\d+", "scalar compare: {c}", "Writes the result to SCC."),
    Row(r"s_bitcmp(?P<n>[01])_b\d+", "test a bit", "SCC is whether a bit is {n}."),
    Row(
        r"s_(?P<o>add|sub|addc|subb|addk|add_co|sub_co|add_co_ci|sub_co_ci|mul|mulk)_[iuf]\d+",
        "scalar {o}",
        "Integers or floats of the whole wave, {o}.",
    ),
    Row(r"s_mul_hi_[iu]32", "scalar multiply, high half", "The high half of a product."),
    Row(r"s_lshl(?P<n>\d)_add_u32", "shift, add", "(a << {n}) + b."),
    Row(
        r"s_(?P<o>and|or|xor|andn2|orn2|not|nand|nor|xnor|and_not1|or_not1)_b(?P<n>\d+)",
        "scalar {o}",
        "{o} of {n} bits: usually lane masks.",
    ),
    Row(
        r"s_(?:lshl|lshr)_b(?P<n>\d+)|s_ashr_i(?P<k>\d+)",
        "scalar shift",
        "Shifts a value of the wave.",
    ),
    Row(r"s_bfe_[iu]\d+", "extract bits", "A bit field, by offset and width."),
    Row(r"s_bfm_b\d+", "bit mask", "A mask of the given number of ones, shifted."),
    Row(r"s_brev_b\d+", "reverse bits", "Reverses the bits; also a short encoding of -2³¹."),
    Row(r"s_(?:bcnt1|bcnt0)_i32_b\d+", "count bits", "Counts the set (or clear) bits."),
    Row(r"s_(?:ff[01]|flbit|ctz|clz|cls)_\w+", "find a bit", "The position of the first such bit."),
    Row(r"s_(?P<o>min|max|abs|absdiff)_[iu]32", "scalar {o}", "{o} of integers of the wave."),
    Row(r"s_sext_i32_i(?P<n>\d+)", "extend the sign", "{n} bits as a signed 32-bit integer."),
    Row(r"s_pack_\w+", "pack", "Two halves into one word."),
    Row(r"s_wqm_b\d+|s_quadmask_b\d+", "quads", "Masks of groups of four lanes."),
    Row(r"s_fmac_f\d+", accumulates=True),
    Row(
        r"s_setprio",
        "priority",
        "Sets the wave's scheduling priority on its SIMD.",
        issue=IssueClass.PRIORITY,
        effect=Effect.NOTHING,
    ),
    _hint(
        r"s_sched_barrier|s_sched_group_barrier",
        "scheduling barrier",
        "A marker for the compiler only.",
    ),
    _hint(
        r"s_clause",
        "clause",
        "The given number of memory instructions issue without others in between. No issue slot.",
        is_free=True,
    ),
    *(
        _hint(
            f"s_{names}",
            "instruction prefetch",
            "Sets how much code is prefetched. Takes no issue slot.",
            is_free=is_free,
        )
        for names, is_free in (
            (r"(?:set_inst_prefetch\w*|inst_prefetch)", True),
            (r"(?:buffer_)?prefetch_\w+", False),
        )
    ),
    _hint(
        r"s_sendmsg\w*",
        "message",
        "Sends a message to the hardware, for example to free registers early.",
        is_free=True,
    ),
    _hint(
        r"s_setreg\w*",
        "write a hardware register",
        "Sets rounding, denormals and other modes of the wave.",
        is_free=True,
    ),
    *(
        Row(
            f"s_{names}",
            "control",
            "Control of the hardware, the debugger, or the end of the code.",
            issue=issue,
            effect=effect,
        )
        for names, issue, effect in (
            (r"(?:icache_inv|dcache_\w+|code_end)", IssueClass.FREE, Effect.NOTHING),
            (r"trap", IssueClass.FREE, Effect.CALLS),
            (r"(?:version|round_mode|denorm_mode)", IssueClass.SCALAR, Effect.NOTHING),
        )
    ),
    _hint(
        r"s_(?:gl1_inv|sched|setkill|incperflevel|decperflevel|ttrace|monitor_sleep|atc_probe"
        r"|set_gpr_idx_off)\w*"
    ),
)
