"""Schedule verifier: order, lifetimes, memory, and every operation of every group."""

from __future__ import annotations

from collections.abc import Collection

from scheduler.fusion.memory import loop_carried_reads
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.operations import BufferKind, GroupKind
from scheduler.lowering.verifier import InconsistentError, Verifier


def verify(plan: Schedule) -> None:
    """Raise ``InconsistentError`` if the schedule is not valid.

    Checks each operation as after lowering. Kernels run after their producers; no member reads a
    value that a later member writes or that stayed in another kernel's registers. A group's members
    have the loops of its kind, and each result is read. Memory is written only for the user or for
    another kernel. A buffer is freed once, after its last reader; two live buffers never share
    memory; every output is written. Time is linear.
    """
    lowered = plan.lowered
    operations = Verifier(lowered.graph, lowered.buffers)
    alive: dict[str, str] = {}  # allocation -> the buffer that lives in it
    freed: set[str] = set()
    read = {name for node in plan.nodes for name in node.reads}
    for node in plan.nodes:
        _check_group(node)
        _check_readers(node, plan, read)
        _check_memory(node, plan, alive, freed)
        for member in node.members:
            operations.check(member)
            operations.write(member)
        results = {name for member in node.members for name in member.writes}
        operations.forget(results.difference(node.writes))
    freed_at = {name: position for position, node in enumerate(plan.nodes) for name in node.frees}
    for name, end in loop_carried_reads(plan.nodes):
        if freed_at.get(name, end) < end:
            raise InconsistentError(f"{name} is freed in a loop whose next step reads it")
    written = {name for node in plan.nodes for name in node.writes}
    for name, buffer in lowered.buffers.items():
        if buffer.kind is BufferKind.OUTPUT and name not in written:
            raise InconsistentError(f"no kernel writes the output {name}")


def _check_group(node: SchedulerNode) -> None:
    writes = {name for member in node.members for name in member.writes}
    reads = {name for member in node.members for name in member.reads} - writes
    if not writes.issuperset(node.writes) or reads != set(node.reads):
        raise InconsistentError(
            f"kernel {node.name} does not list all reads and writes of its operations"
        )
    if node.kind is GroupKind.GEMM and len(node.members) > 1:
        shared = {(m.a, m.batch, m.m, m.k) for m in node.contractions}
        if len(shared) != 1 or len(node.contractions) != len(node.members):
            raise InconsistentError(
                f"the matrix products of kernel {node.name} do not share their rows"
            )
    elif node.kind is GroupKind.REDUCTION:
        outer, inner = next(m.nest for m in node.members if m.group_kind is GroupKind.REDUCTION)
        for member in node.members:
            is_pointwise = member.group_kind is GroupKind.POINTWISE
            fits = is_pointwise and member.points in (outer, (*outer, *inner))
            if member.group_kind is GroupKind.REDUCTION:
                fits = member.nest == (outer, inner)
            if not fits:
                raise InconsistentError(
                    f"{member.name} has other loops than its kernel {node.name}"
                )
    elif node.kind is not GroupKind.POINTWISE and len(node.members) != 1:
        raise InconsistentError(f"kernel {node.name} has {len(node.members)} main operations")


def _check_readers(node: SchedulerNode, plan: Schedule, read: Collection[str]) -> None:
    """Check that every result has a reader. Externs always compute all of their results."""
    if not node.kind.has_kernel:
        return
    buffers = plan.lowered.buffers
    for name in node.writes:
        if name not in read and buffers[name].kind is BufferKind.INTERMEDIATE:
            raise InconsistentError(f"kernel {node.name} writes {name}, which is never read")
    used = {*node.writes, *(name for member in node.members for name in member.reads)}
    for member in node.members:
        if not used.intersection(member.writes):
            raise InconsistentError(
                f"the result of {member.name} in kernel {node.name} is never used"
            )


def _check_memory(
    node: SchedulerNode, plan: Schedule, alive: dict[str, str], freed: set[str]
) -> None:
    for name in node.reads:
        if name in freed:
            raise InconsistentError(f"kernel {node.name} reads {name} after it was freed")
    for name in node.writes:
        if plan.lowered.buffers[name].kind is not BufferKind.INTERMEDIATE:
            continue
        pool = plan.storage.get(name)
        if pool is None:  # a loop's buffer, in memory of its own
            continue
        if pool in alive:
            raise InconsistentError(
                f"kernel {node.name} writes {name} to memory where {alive[pool]} is still needed"
            )
        alive[pool] = name
    for name in node.frees:
        freed.add(name)
        alive.pop(plan.storage[name], None)
