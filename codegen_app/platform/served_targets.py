"""The targets that this site generates kernels for."""

from __future__ import annotations

from scheduler import targets
from scheduler.codegen.scheduling import targets_sharing_source


def served_targets() -> tuple[targets.Target, ...]:
    """Return the targets that kernels are generated for here: they all share a kernel's source."""
    return targets_sharing_source(targets.find(targets.names()[0]))


def served_target_names() -> tuple[str, ...]:
    """Return their names in display order."""
    return tuple(target.name for target in served_targets())
