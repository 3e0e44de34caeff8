"""Rows of the instructions that access memory: global, flat, buffer, scratch and LDS."""

from __future__ import annotations

from scheduler.isa.rocm.instruction_set.row import (
    LDS_ATOMIC,
    LDS_EXCHANGE,
    LDS_READ,
    LDS_WRITE,
    Effect,
    IssueClass,
    LocalAccess,
    Row,
)

_SIZE = r"(?P<t>[us]?(?:byte|short)|dword(?:x\d+)?|[biu]\d+)(?:_d16)?(?:_hi)?"

MEMORY: tuple[Row, ...] = (
    Row(
        rf"(?P<w>global|flat|buffer|scratch)_load_lds_{_SIZE}",
        "load to LDS",
        "Each lane loads {t} from {w} directly into LDS, bypassing the registers.",
    ),
    Row(
        rf"(?P<w>global|flat|buffer|scratch)_load_tr_{_SIZE}",
        "transposed load",
        "Loads a tile of {w} transposed, in the layout of matrix instructions.",
    ),
    Row(
        rf"(?P<w>global|flat|buffer|scratch)_load_(?:tr_)?(?:d16_)?(?:hi_)?{_SIZE}",
        "load",
        "Each lane reads {t} from {w}. The wave continues; a wait on the counter precedes the first"
        " use.",
    ),
    Row(
        rf"(?P<w>global|flat|buffer|scratch)_store_(?:d16_)?(?:hi_)?{_SIZE}",
        "store",
        "Each lane writes {t} to {w}.",
    ),
    Row(
        r"(?P<w>global|flat|buffer)_atomic_(?P<o>\w+?)_?(?P<t>x2|[fiub]\d+|pk_\w+)?",
        "atomic {o}",
        "Each lane updates a word of {w} atomically, in L2.",
    ),
    Row(
        r"(?:buffer|global)_(?:wb\w*|inv\w*|gl\w+)",
        "cache control",
        "Writes back or invalidates cache lines, to order accesses with other compute units.",
        issue=IssueClass.FREE,
        effect=Effect.NOTHING,
    ),
    Row(r"global_prefetch\w*", effect=Effect.NOTHING),
)
LDS: tuple[Row, ...] = (
    Row(
        r"ds_(?:read|load)_(?P<t>[biu]\d+)(?:_d16)?(?:_hi)?",
        "LDS read",
        "Each lane reads {t} from LDS. Lanes that access the same bank in a pass are serialized.",
        local=LDS_READ,
    ),
    Row(
        r"ds_(?:read|load)_2addr(?:_stride64)?_b(?P<n>\d+)|ds_read2(?:st64)?_b(?P<k>\d+)",
        "two LDS reads",
        "Each lane reads at two offsets of one address.",
        local=LDS_READ,
    ),
    Row(
        r"ds_(?:read|load)_\w*tr\w*",
        "transposed LDS read",
        "Reads a tile transposed, in the layout of matrix instructions.",
        local=LDS_READ,
    ),
    Row(r"ds_(?:read|load)\w*", local=LDS_READ),
    Row(
        r"ds_(?:write|store)_(?P<t>b\d+)(?:_d16_hi)?",
        "LDS write",
        "Each lane writes {t} to LDS.",
        local=LDS_WRITE,
    ),
    Row(
        r"ds_(?:store_2addr(?:_stride64)?|write2(?:st64)?)_b(?P<n>\d+)",
        "two LDS writes",
        "Each lane writes at two offsets of one address.",
        local=LDS_WRITE,
    ),
    Row(
        r"ds_bpermute(?:_fi)?_b32",
        "lane exchange, backward",
        "Each lane reads the value of a selected lane through the LDS crossbar; LDS memory is not"
        " accessed.",
        local=LDS_EXCHANGE,
    ),
    Row(
        r"ds_permute_b32",
        "lane exchange, forward",
        "Each lane sends its value to a selected lane through the LDS crossbar.",
        local=LDS_EXCHANGE,
    ),
    Row(
        r"ds_swizzle_b32",
        "lane exchange by a pattern",
        "Lanes exchange values by a fixed pattern.",
        local=LDS_EXCHANGE,
    ),
    Row(
        r"ds_(?P<o>add|sub|min|max|and|or|xor|inc|dec|cmpst|cmpstore|pk_add|wrxchg|storexchg)_\w+",
        "LDS atomic {o}",
        "Each lane updates a word of LDS atomically.",
        local=LDS_ATOMIC,
    ),
    Row(r"ds_(?:write|store)\w*", local=LDS_WRITE),
    Row(r"ds_(?:consume|append)\w*", local=LDS_READ),
    Row(r"ds_ordered\w*", local=LocalAccess(reads=True, writes=True, atomic=True)),
    Row(
        r"ds_(?:rsub|mskor|wrxchg2|wrxchg2st64|storexchg_2addr|cond_sub|sub_clamp)_\w+",
        local=LDS_ATOMIC,
    ),
    Row(
        r"ds_nop",
        "no operation",
        "Does nothing in the LDS queue.",
        issue=IssueClass.FREE,
        effect=Effect.NOTHING,
    ),
)
# Bytes per lane by the last part of a load's or store's name: the older and the later spelling.
DATA_SIZES = (
    ("ubyte", "u8", 1),
    ("sbyte", "i8", 1),
    ("byte", "b8", 1),
    ("ushort", "u16", 2),
    ("sshort", "i16", 2),
    ("short", "b16", 2),
    ("dword", "b32", 4),
    ("dwordx2", "b64", 8),
    ("dwordx3", "b96", 12),
    ("dwordx4", "b128", 16),
    ("dwordx8", "b256", 32),
    ("dwordx16", "b512", 64),
)


def loads_to_lds(mnemonic: str, operands: str) -> bool:
    """Whether a load writes LDS instead of registers."""
    return "_lds_" in mnemonic or operands.endswith(" lds")
