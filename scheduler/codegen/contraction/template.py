"""The language-independent part of matrix product templates."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.contraction.prepare import gemm_contractions
from scheduler.codegen.kernel import LineOrigin
from scheduler.codegen.template import KernelTemplate
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.operations import Lowered
from scheduler.targets import Target

CONFIGURATION = "<CONFIGURATION>"
"""What a source has in place of the constants of a configuration."""

ConfigT = TypeVar("ConfigT")


class ContractionTemplate(KernelTemplate, Generic[ConfigT]):
    """out[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n], with prologues and
    epilogues as trees. Several members share ``a``: a tile's position in n selects the member."""

    contractions = staticmethod(gemm_contractions)
    """Returns the contractions of the node, in the form that suits the kernel."""

    def __init__(
        self,
        node: SchedulerNode,
        lowered: Lowered,
        targets: tuple[Target, ...],
        comment: MetadataComment | None = None,
    ) -> None:
        super().__init__(node, lowered, targets, comment)
        self._members = self.contractions(node, lowered)
        self._texts: dict[tuple[object, ...], tuple[str, str, tuple[LineOrigin, ...]]] = {}

    @property
    def contraction_nodes(self) -> tuple[str, ...]:
        """Return the graph nodes that the members compute."""
        return tuple(dict.fromkeys(node for member in self._members for node in member.nodes))

    @abstractmethod
    def source(self, config: ConfigT) -> str:
        """Return the source, with marks and with ``CONFIGURATION`` in place of the constants."""

    def insert_constants(
        self, kind: tuple[object, ...], config: ConfigT, constants: str
    ) -> tuple[str, tuple[LineOrigin, ...]]:
        """Return the source with a configuration's constants, and the origins of its lines. It is
        rendered once for all configurations of a kind, which have as many lines."""
        if kind not in self._texts:
            text = self.source(config).replace(CONFIGURATION, constants)
            source, origins = self.marks.finish(text)
            before, _, after = source.partition(constants)
            self._texts[kind] = before, after, origins
        before, after, origins = self._texts[kind]
        return before + constants + after, origins
