"""Classifies instructions by mnemonic: AMD's; x86 and Arm only roughly."""

from __future__ import annotations

import re

from scheduler.isa.instructions import Kind

# The first matching prefix decides, so longer prefixes come first.
_PREFIXES = (
    ("v_mfma", Kind.MATRIX),
    ("v_smfmac", Kind.MATRIX),
    ("v_wmma", Kind.MATRIX),
    ("v_swmmac", Kind.MATRIX),
    ("v_", Kind.VECTOR),
    ("ds_", Kind.LDS),
    ("global_", Kind.GLOBAL),
    ("buffer_", Kind.GLOBAL),
    ("tbuffer_", Kind.GLOBAL),
    ("flat_", Kind.GLOBAL),
    ("image_", Kind.GLOBAL),
    ("scratch_", Kind.SCRATCH),
    ("s_wait", Kind.WAIT),
    ("s_barrier", Kind.WAIT),
    ("s_nop", Kind.WAIT),
    ("s_sleep", Kind.WAIT),
    ("s_delay_alu", Kind.WAIT),
    ("s_branch", Kind.BRANCH),
    ("s_cbranch", Kind.BRANCH),
    ("s_endpgm", Kind.BRANCH),
    ("s_setpc", Kind.BRANCH),
    ("s_swappc", Kind.BRANCH),
    ("s_call", Kind.BRANCH),
    ("s_", Kind.SCALAR),
)
_HOST_BRANCH = re.compile(r"j\w+|call\w?|ret\w?|b|bl|br|blr|cbn?z|tbn?z|b\.\w\w")
_ENDS = frozenset(["s_endpgm", "s_setpc_b64", "s_endpgm_saved", "ret", "retq", "ud2"])
_JUMPS = frozenset(["s_branch", "jmp", "jmpq", "b", "br"])


def kind_of(mnemonic: str) -> Kind:
    """Return the class of an AMD instruction; for other machines, branch or other."""
    for prefix, kind in _PREFIXES:
        if mnemonic.startswith(prefix):
            return kind
    return Kind.BRANCH if _HOST_BRANCH.fullmatch(mnemonic) else Kind.OTHER


def falls_through(mnemonic: str) -> bool:
    """Whether the next instruction may be executed after it."""
    return mnemonic not in _ENDS and mnemonic not in _JUMPS
