"""CuteDSL templates over small groups, as ``test_pointwise_kernels`` makes HIP's."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler import targets
from scheduler.codegen.cutedsl.attention import AttentionTemplate
from scheduler.codegen.cutedsl.pointwise import PointwiseTemplate
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.operations import Buffer, GroupKind, Pointwise
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
