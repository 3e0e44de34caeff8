"""The steps of a bundle as its wrapper runs them: what cannot run, and how long memory is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scheduler.codegen import wrapper_host, wrapper_loops
from scheduler.codegen.program import StepKind, build_program, loop_ends
from scheduler.ir.index.functions import unbacked_sizes
from scheduler.ir.index.text import parse_expr
from scheduler.ir.operations import size_buffer_name


class WrapperProgram:
    """The order of a ``manifest``'s calls, externs and loops; ``ends`` gives for each position of a
    loop's begin that of its end. ``missing`` are the buffers that no step fills, each with the
    extern that it depends on."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self._buffers: Mapping[str, Mapping[str, Any]] = manifest["buffers"]
        self._kernels: Mapping[str, Mapping[str, Any]] = manifest["kernels"]
        self._outputs: Sequence[str] = manifest["outputs"]
        self.calls: Sequence[Mapping[str, Any]] = manifest["calls"]
        self.externs: Sequence[Mapping[str, Any]] = manifest["externs"]
        self.loops: Sequence[Mapping[str, Any]] = manifest.get("loops", ())
        loops = [(tuple(loop["begin"]), tuple(loop["end"])) for loop in self.loops]
        externs = [extern["position"] for extern in self.externs]
        self.steps = build_program(len(self.calls), externs, loops)
        self.ends = loop_ends(self.steps)
        self.aliases = {name for loop in self.loops for name in wrapper_loops.alias_buffers(loop)}
        self.missing = self._find_missing()

    def arguments(self, call: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the value of each kernel argument, with the argument: a size may have the same
        name as a buffer."""
        args = self._kernels[call["kernel"]]["args"]
        return [(call["args"][arg["name"]], arg) for arg in args]

    def buffers_of(self, call: Mapping[str, Any]) -> list[str]:
        """Return the buffers passed to a call."""
        return [value for value, arg in self.arguments(call) if arg["type"] == "ptr"]

    def _written(self, call: Mapping[str, Any]) -> list[str]:
        return [value for value, arg in self.arguments(call) if arg.get("output")]

    def is_call_missing(self, call: Mapping[str, Any]) -> bool:
        """Whether a call is left out: a buffer that it reads is missing."""
        return any(name in self.missing for name in self._written(call))

    def is_loop_missing(self, number: int) -> bool:
        """Whether a loop is left out."""
        results = wrapper_loops.result_buffers(self.loops[number])
        return any(name in self.missing for name in results)

    def _find_missing(self) -> dict[str, Mapping[str, Any]]:
        """Return buffers that are not filled, each with the extern that it depends on. For an
        extern of an old bundle, which does not list its outputs, all later buffers count."""
        missing: dict[str, Mapping[str, Any]] = {}
        unlisted_extern: Mapping[str, Any] | None = None
        for kind, number in self.steps:
            if kind is StepKind.EXTERN:
                extern = self.externs[number]
                if wrapper_host.host_function(extern, self._buffers):
                    causes = [missing[name] for name in extern["inputs"] if name in missing]
                    missing.update((name, causes[0]) for name in extern["outputs"] if causes)
                    continue
                missing.update(dict.fromkeys(extern.get("outputs", ()), extern))
                unlisted_extern = unlisted_extern or (None if extern.get("outputs") else extern)
                continue
            if kind is StepKind.CALL:
                call = self.calls[number]
                writes = self._written(call)
                reads = [name for name in self.buffers_of(call) if name not in writes]
                # The buffers of data-dependent sizes that it takes.
                for value, arg in self.arguments(call):
                    if arg["type"] != "ptr":
                        reads += map(size_buffer_name, unbacked_sizes(parse_expr(value)))
            else:
                loop = self.loops[number]
                reads, writes = wrapper_loops.reads_and_writes(loop, at_end=kind is StepKind.END)
                reads += map(size_buffer_name, unbacked_sizes(parse_expr(loop.get("steps", "0"))))
            missing_reads = [name for name in reads if name in missing]
            cause = missing[missing_reads[0]] if missing_reads else unlisted_extern
            if cause is not None:
                missing.update(dict.fromkeys(writes, cause))
        return missing

    def last_uses(self, pointer_of: Callable[[str], str]) -> dict[int, list[str]]:
        """Return the memory to free after each step of the order: intermediates after their last
        use, and never within a loop. ``pointer_of`` gives the variable of a buffer's memory."""
        last_positions: dict[str, int] = {}
        permanent = {name for loop in self.loops for name in wrapper_loops.owned_buffers(loop)}
        permanent |= self.aliases | set(self._outputs)
        skipped_positions: set[int] = set()
        outermost_end: dict[int, int] = {}  # of the loops around a step
        for begin, end in sorted(self.ends.items()):
            for position in range(begin, end + 1):
                outermost_end.setdefault(position, end)
            if self.is_loop_missing(self.steps[begin].number):
                skipped_positions.update(range(begin, end + 1))
        for position, (kind, number) in enumerate(self.steps):
            if position in skipped_positions:
                continue
            names: Sequence[str] = ()
            if kind is StepKind.CALL:
                call = self.calls[number]
                names = () if self.is_call_missing(call) else self.buffers_of(call)
            elif kind is StepKind.EXTERN:
                names = self.externs[number].get("inputs", ())
            else:
                names = wrapper_loops.condition_buffers(self.loops[number])
            for name in names:
                if self._buffers[name]["kind"] == "intermediate" and name not in permanent:
                    pointer = pointer_of(name)
                    if kind is StepKind.CALL or pointer in last_positions:
                        last_positions[pointer] = outermost_end.get(position, position)
        frees: dict[int, list[str]] = {}
        for pointer, position in last_positions.items():
            frees.setdefault(position, []).append(pointer)
        return frees
