"""Canonical names of instructions: the oldest spelling, without its encoding.

Sources: LLVM's AMDGPU assembler syntax of GFX9, GFX11 and GFX12 (renamed instructions).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

_ENCODING = re.compile(r"_(?:e32|e64|dpp8?|sdwa|e64_dpp8?)$")
_WORDS = {"b8": "byte", "u8": "ubyte", "i8": "sbyte", "b16": "short", "u16": "ushort"}
_WORDS |= {"i16": "sshort", "b32": "dword", "b64": "dwordx2", "b96": "dwordx3"}
_WORDS |= {"b128": "dwordx4", "b256": "dwordx8", "b512": "dwordx16"}
_MEMORY = re.compile(
    r"(global|flat|scratch|buffer|s|s_buffer)_(load|store)_(lds_)?(d16_)?(hi_)?([bui]\d+)"
)
_LDS = re.compile(r"ds_(load|store)(_2addr(?:_stride64)?|x?)(_.*)")
_ATOMIC = re.compile(r"((?:global|flat|buffer)_atomic)_(\w+?)_([bui])(32|64)")

_RENAMED: Mapping[str, str] = MappingProxyType(
    {
        # vector
        "v_add_nc_u32": "v_add_u32",
        "v_sub_nc_u32": "v_sub_u32",
        "v_subrev_nc_u32": "v_subrev_u32",
        "v_add_nc_i32": "v_add_i32",
        "v_sub_nc_i32": "v_sub_i32",
        "v_add_nc_u16": "v_add_u16",
        "v_sub_nc_u16": "v_sub_u16",
        "v_add_nc_i16": "v_add_i16",
        "v_sub_nc_i16": "v_sub_i16",
        "v_add_co_ci_u32": "v_addc_co_u32",
        "v_sub_co_ci_u32": "v_subb_co_u32",
        "v_subrev_co_ci_u32": "v_subbrev_co_u32",
        "v_mad_co_u64_u32": "v_mad_u64_u32",
        "v_mad_co_i64_i32": "v_mad_i64_i32",
        "v_clz_i32_u32": "v_ffbh_u32",
        "v_ctz_i32_b32": "v_ffbl_b32",
        "v_cls_i32": "v_ffbh_i32",
        # scalar
        "s_and_not1_b32": "s_andn2_b32",
        "s_and_not1_b64": "s_andn2_b64",
        "s_or_not1_b32": "s_orn2_b32",
        "s_or_not1_b64": "s_orn2_b64",
        "s_and_not1_saveexec_b32": "s_andn2_saveexec_b32",
        "s_and_not1_saveexec_b64": "s_andn2_saveexec_b64",
        "s_or_not1_saveexec_b32": "s_orn2_saveexec_b32",
        "s_or_not1_saveexec_b64": "s_orn2_saveexec_b64",
        "s_and_not0_saveexec_b32": "s_andn1_saveexec_b32",
        "s_and_not0_saveexec_b64": "s_andn1_saveexec_b64",
        "s_or_not0_saveexec_b32": "s_orn1_saveexec_b32",
        "s_or_not0_saveexec_b64": "s_orn1_saveexec_b64",
        "s_and_not1_wrexec_b32": "s_andn2_wrexec_b32",
        "s_and_not1_wrexec_b64": "s_andn2_wrexec_b64",
        "s_and_not0_wrexec_b32": "s_andn1_wrexec_b32",
        "s_and_not0_wrexec_b64": "s_andn1_wrexec_b64",
        "s_add_co_u32": "s_add_u32",
        "s_add_co_i32": "s_add_i32",
        "s_add_co_ci_u32": "s_addc_u32",
        "s_sub_co_u32": "s_sub_u32",
        "s_sub_co_i32": "s_sub_i32",
        "s_sub_co_ci_u32": "s_subb_u32",
        "s_addk_co_i32": "s_addk_i32",
        "s_ctz_i32_b32": "s_ff1_i32_b32",
        "s_ctz_i32_b64": "s_ff1_i32_b64",
        "s_clz_i32_u32": "s_flbit_i32_b32",
        "s_clz_i32_u64": "s_flbit_i32_b64",
        "s_cls_i32": "s_flbit_i32",
        "s_cls_i32_i64": "s_flbit_i32_i64",
    }
)
_ATOMICS = {"swap": "swap", "cmpswap": "cmpswap", "add": "add", "sub": "sub", "and": "and"}
_ATOMICS |= {"or": "or", "xor": "xor", "inc": "inc", "dec": "dec", "min": "min", "max": "max"}


def canonical_name(mnemonic: str, spellings: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the name that the tables use. ``spellings`` are further renamings."""
    name = _ENCODING.sub("", mnemonic)
    name = spellings.get(name, name)
    name = _RENAMED.get(name, name)
    memory = _MEMORY.fullmatch(name)
    if memory:
        return _memory(memory)
    atomic = _ATOMIC.fullmatch(name)
    if atomic and atomic[2].removesuffix("_clamp") in _ATOMICS:
        return _atomic(atomic)
    lds = _LDS.fullmatch(name)
    if lds and not lds[3].startswith(("_tr", "_b64_tr")):
        return _lds(lds)
    return name


def _memory(match: re.Match[str]) -> str:
    space, verb, lds, d16, hi, width = match.groups()
    if d16:
        word = _WORDS.get(width, width)
        return f"{space}_{verb}_{lds or ''}{word}_d16{'_hi' if hi else ''}"
    return f"{space}_{verb}_{lds or ''}{_WORDS.get(width, width)}"


def _atomic(match: re.Match[str]) -> str:
    stem, verb, sign, width = match.groups()
    if verb in ("min", "max"):
        verb = ("s" if sign == "i" else "u") + verb
    return f"{stem}_{verb}{'_x2' if width == '64' else ''}"


def _lds(match: re.Match[str]) -> str:
    verb = "read" if match[1] == "load" else "write"
    pair = match[2].replace("_2addr", "2").replace("_stride64", "st64")
    rest = match[3]
    if rest.startswith("xchg"):
        return match[0]
    d16 = re.fullmatch(r"_([bui]\d+)_d16(_hi)?|_([bui]\d+)", rest)
    return f"ds_{verb}{pair}{rest}" if d16 else match[0]
