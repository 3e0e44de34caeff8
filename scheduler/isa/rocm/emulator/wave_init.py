"""The initial state of waves: the arguments in memory, and the registers that the hardware sets.

Source: LLVM, "User Guide for AMDGPU Backend": initial kernel execution state, kernel descriptor,
code object metadata; HSA's dispatch packet.
"""

from __future__ import annotations

import struct

import numpy as np

from scheduler.errors import UserError
from scheduler.isa.rocm.emulator.buffers import SCRATCH_FLAGS
from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.emulator.operands import TTMP
from scheduler.isa.rocm.emulator.program import KernelArgument, Program
from scheduler.isa.rocm.emulator.state import Group, Value, collapse

_PACKET = 64
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


def kernarg_segment(program: Program, launch: Launch) -> bytes:
    """Return the kernarg segment.

    Raises:
        UserError: the number of arguments differs from the kernel's, or the size of their bytes.
    """
    explicit = [each for each in program.arguments if not each.hidden]
    if len(explicit) != len(launch.arguments):
        raise UserError(
            f"{program.function.name} takes {len(explicit)} arguments, "
            f"but its launch has {len(launch.arguments)}"
        )
    data = bytearray(max(program.kernarg_bytes, 1))
    for argument, value in zip(explicit, launch.arguments, strict=True):
        data[argument.offset : argument.offset + argument.size] = _bytes(argument, value)
    hidden = {  # others are 0: offsets and remainders of the grid, host buffers
        **dict(zip((f"hidden_block_count_{axis}" for axis in "xyz"), launch.grid, strict=True)),
        **dict(zip((f"hidden_group_size_{axis}" for axis in "xyz"), launch.block, strict=True)),
        "hidden_grid_dims": max(
            axis + 1 for axis in range(3) if axis == 0 or _threads(launch)[axis] > 1
        ),
        "hidden_dynamic_lds_size": launch.dynamic_lds_bytes,
    }
    for argument in program.arguments:
        if argument.hidden:
            number = hidden.get(argument.kind, 0)
            end = argument.offset + argument.size
            data[argument.offset : end] = _bytes(argument, number)
    return bytes(data)


def fits_float(value: float, size: int) -> bool:
    """Whether a float type of so many bytes exists and the value is within its range."""
    try:
        return size in _FLOATS and bool(struct.pack(_FLOATS[size], value))
    except OverflowError:
        return False


def number_bytes(value: int | float, size: int) -> bytes:
    """Return a number's bytes in memory."""
    if isinstance(value, float) and size in _FLOATS:
        return struct.pack(_FLOATS[size], value)
    return (int(value) & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


def _bytes(argument: KernelArgument, value: int | float | bytes) -> bytes:
    if not isinstance(value, bytes):
        return number_bytes(value, argument.size)
    if len(value) != argument.size:
        raise UserError(f"{len(value)} bytes for an argument of {argument.size}")
    return value


def _threads(launch: Launch) -> tuple[int, int, int]:
    x, y, z = (blocks * size for blocks, size in zip(launch.grid, launch.block, strict=True))
    return x, y, z


def dispatch_packet(program: Program, launch: Launch, arguments: int) -> bytes:
    """The dispatch packet."""
    lds = program.lds_bytes + launch.dynamic_lds_bytes
    return struct.pack(
        "<HHHHHHIIIIIQQQQ",
        *(2, 3, *launch.block, 0, *_threads(launch), program.scratch_bytes, lds),
        *(0, arguments, 0, 0),
    ).ljust(_PACKET, b"\0")


def init_waves(
    program: Program, launch: Launch, group: Group, waves: list[tuple[int, int]], at: int
) -> None:
    """Set the registers of waves, each (block, wave in its block); the kernarg segment is at
    ``at``, the dispatch packet after it."""
    packet_at = at + -(-max(program.kernarg_bytes, 1) // 256) * 256
    # The user registers that the descriptor requests, in order.
    directives = program.directives
    position = 0
    for name, values in (
        ("private_segment_buffer", (0, 0, 0xFFFF_FFFF, SCRATCH_FLAGS)),
        ("dispatch_ptr", (packet_at & 0xFFFF_FFFF, packet_at >> 32)),
        ("queue_ptr", (0, 0)),
        ("kernarg_segment_ptr", (at & 0xFFFF_FFFF, at >> 32)),
        ("dispatch_id", (0, 0)),
        ("flat_scratch_init", (0, 0)),
        ("private_segment_size", (program.scratch_bytes,)),
    ):
        if directives.get(f"user_sgpr_{name}"):
            group.s[position : position + len(values)] = values
            position += len(values)
    length = min(directives.get("user_sgpr_kernarg_preload_length", 0), 16)
    first = directives.get("user_sgpr_kernarg_preload_offset", 0)
    if length > 0:
        data = group.machine.memory.read(at + 4 * first, 4 * length)
        group.s[position : position + length] = struct.unpack(f"<{length}I", data)
        position += length
    position = directives.get("user_sgpr_count", position)
    x, y, _ = launch.grid
    ids = [(block % x, block // x % y, block // (x * y)) for block, _ in waves]
    columns: list[Value] = [collapse([block_id[axis] for block_id in ids]) for axis in range(3)]
    if program.gpu.block_ids_in_trap_registers:
        group.s[TTMP + 9] = columns[0]
        group.s[TTMP + 7] = collapse([block_id[1] & 0xFFFF | block_id[2] << 16 for block_id in ids])
    else:
        for axis, letter in enumerate("xyz"):
            default = int(axis == 0)
            if directives.get(f"system_sgpr_workgroup_id_{letter}", default):
                group.s[position] = columns[axis]
                position += 1
    # Thread ids in v0 (packed on GFX90A and later), and the active lanes.
    thread = np.array([wave for _, wave in waves])[:, None] * group.lanes + np.arange(group.lanes)
    x, y, _ = launch.block
    axes = (thread % x, thread // x % y, thread // (x * y))
    used = directives.get("system_vgpr_workitem_id", 0)
    packed = sum(axes[axis] << (10 * axis) for axis in range(used + 1) if axis < 3)
    group.v[0] = np.asarray(packed).astype(np.uint32)
    masks = [
        int(sum(1 << lane for lane in np.nonzero(active)[0].tolist()))
        for active in thread < launch.threads
    ]
    group.set_exec(collapse(masks))
