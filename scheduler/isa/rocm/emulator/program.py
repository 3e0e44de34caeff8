"""A kernel ready to run: its instructions, its descriptor and its metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.errors import UserError
from scheduler.isa.listing import Function
from scheduler.isa.rocm.emulator.constant_tables import read_tables
from scheduler.isa.rocm.reader import GPU
from scheduler.targets.amd import AmdHardware
from scheduler.targets.generations import amd_gpu

_DESCRIPTOR = re.compile(
    r"^\s*\.amdhsa_kernel[ \t]+(\S+)[ \t]*\n(.*?)^\s*\.end_amdhsa_kernel", re.MULTILINE | re.DOTALL
)
_DIRECTIVE = re.compile(r"^\s*\.amdhsa_(\w+)[ \t]+(-?\d+|0x[0-9a-fA-F]+)\s*(?:;.*)?$", re.MULTILINE)
_METADATA = re.compile(r"\.amdgpu_metadata\n(.*?)\.end_amdgpu_metadata", re.DOTALL)
_TARGET = re.compile(r'\.amdgcn_target\s+"[^"]*--(gfx\w+)')
_KERNEL = re.compile(r"^ {2}- ", re.MULTILINE)
_ARGUMENT = re.compile(r"^ {6}- ", re.MULTILINE)
_FIELD = re.compile(r"\.(\w+):[ \t]*(\S*)")
_MAX_SEGMENT = 1 << 20


@dataclass(frozen=True)
class KernelArgument:
    """One argument in the kernarg segment: bytes ``offset`` to ``offset + size``; ``kind`` as in
    the metadata (``global_buffer``, ``by_value``, ``hidden_block_count_x`` …); ``name`` is the
    source's, if the metadata has one."""

    offset: int
    size: int
    kind: str
    name: str = ""

    @property
    def hidden(self) -> bool:
        return self.kind.startswith("hidden_")


@dataclass(frozen=True)
class Program:
    """``directives`` are the descriptor's values by name (without ``.amdhsa_``). ``lds_bytes`` are
    per block, ``scratch_bytes`` per lane; ``tables`` are constants that instructions refer to by
    name. ``cache`` stores what is derived once from the instructions."""

    gpu: AmdHardware
    function: Function
    directives: Mapping[str, int]
    arguments: tuple[KernelArgument, ...]
    kernarg_bytes: int
    lds_bytes: int
    scratch_bytes: int
    lanes: int
    tables: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    cache: dict[object, object] = field(default_factory=dict, repr=False, compare=False)

    @property
    def processor(self) -> str:
        return self.gpu.processor


def program_of(listing: str, name: str, processor: str = "") -> Program:
    """Return the kernel of that name. ``processor`` is used if the listing does not name one.

    Raises:
        UserError: the listing has no such kernel, lacks what is needed to start one, or is
            for an unknown GPU.
    """
    function = GPU.parse(listing).function(name)
    if function is None:
        raise UserError(f"the listing has no function {name!r}")
    target = _TARGET.search(listing)
    gpu = amd_gpu(target[1] if target else processor)
    descriptors = {match[1]: match[2] for match in reversed([*_DESCRIPTOR.finditer(listing)])}
    fields, arguments = _metadata(listing, name)
    if name not in descriptors:
        raise UserError(f"{name}: no kernel descriptor (.amdhsa_kernel) in the listing")
    directives = {match[1]: int(match[2], 0) for match in _DIRECTIVE.finditer(descriptors[name])}
    lds = directives.get("group_segment_fixed_size", 0)
    scratch = directives.get("private_segment_fixed_size", 0)
    wave32 = directives.get("wavefront_size32", 1 if gpu.wavefront == 32 else 0)
    kernarg = max(
        directives.get("kernarg_size", 0),
        fields.get("kernarg_segment_size", 0),
        *(argument.offset + argument.size for argument in arguments),
        0,
    )
    for what, size in (("LDS", lds), ("scratch", scratch), ("arguments", kernarg)):
        if not 0 <= size <= _MAX_SEGMENT:
            raise UserError(f"{name}: {size} bytes of {what} exceed the limit of a kernel")
    return Program(
        *(gpu, function, directives, arguments, kernarg, lds, scratch),
        lanes=32 if wave32 else 64,
        tables=read_tables(listing),
    )


def _metadata(listing: str, name: str) -> tuple[dict[str, int], tuple[KernelArgument, ...]]:
    """Return the kernel's own numbers, and its arguments."""
    block = _METADATA.search(listing)
    if not block:
        return {}, ()
    for item in _KERNEL.split(block[1].partition("amdhsa.kernels:")[2])[1:]:
        of_kernel = re.sub(r"^ {6,}.*$", "", item, flags=re.MULTILINE)
        fields = {match[1]: match[2].strip("'\"") for match in _FIELD.finditer(of_kernel)}
        if fields.get("name") != name:
            continue
        text = item.partition(".args:")[2]
        text = re.split(r"^ {4}\.", text, maxsplit=1, flags=re.MULTILINE)[0]
        arguments = []
        for part in _ARGUMENT.split(text)[1:]:
            argument = {match[1]: match[2] for match in _FIELD.finditer(part)}
            offset, size = argument.get("offset", ""), argument.get("size", "")
            if offset.isdecimal() and size.isdecimal():
                kind, label = argument.get("value_kind", "by_value"), argument.get("name", "")
                arguments.append(KernelArgument(int(offset), int(size), kind, label.strip("'\"")))
        numbers = {key: int(value) for key, value in fields.items() if value.isdecimal()}
        return numbers, tuple(arguments)
    return {}, ()
