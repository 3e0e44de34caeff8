"""CuteDSL templates over small groups, as ``test_pointwise_kernels`` makes HIP's."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler import targets
from scheduler.build.compile import build
from scheduler.build.model import Build
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.cutedsl.attention.template import AttentionTemplate
from scheduler.codegen.cutedsl.pointwise import PointwiseTemplate
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.operations import Buffer, GroupKind, Pointwise
from tests.support.caches import KEPT
from tests.unit.codegen.loopnest import group
from tests.unit.codegen.test_attention_kernels import attention_node

SM_90 = (targets.find("sm_90"),)


def cutedsl_template(
    members: Sequence[Pointwise], buffers: Sequence[Buffer], symbols: Sequence[SymbolInfo] = ()
) -> PointwiseTemplate:
    node, lowered = group(GroupKind.POINTWISE, members, buffers, symbols)
    return PointwiseTemplate(node, lowered, SM_90)


def cutedsl_attention(*args: object, **kwargs: object) -> AttentionTemplate:
    """CuteDSL's template for ``attention_node``."""
    node, lowered = attention_node(*args, **kwargs)
    return AttentionTemplate(node, lowered, SM_90)


def built(caller: TemplateCaller) -> Build:
    """A candidate's kernel, built as Kiln builds it."""
    (target,), kernel = SM_90, caller.kernel
    toolchain = pick_toolchain(
        find_target_toolchains(target, Search(cache=KEPT)), target, kernel.source_file
    )
    made = build(
        kernel.source, kernel.name, target, toolchain, KEPT, source_file=kernel.source_file
    )
    assert isinstance(made, Build), f"{made.reason}\n{made.detail}"
    return made
