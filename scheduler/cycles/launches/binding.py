"""Binds a launch description to a kernel: maps its buffers and converts its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.cycles.launches.contents import pack_values, random_values
from scheduler.cycles.launches.parser import (
    MOST_ARGUMENTS,
    Argument,
    Buffer,
    BufferAlias,
    LaunchSpec,
    Pointer,
    Struct,
    StructNumber,
)
from scheduler.errors import UserError
from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.emulator.memory import ALIGNMENT, Memory
from scheduler.isa.rocm.emulator.program import KernelArgument as Place
from scheduler.isa.rocm.emulator.program import Program
from scheduler.isa.rocm.emulator.wave_init import fits_float, number_bytes
from scheduler.targets import Target
from scheduler.targets.amd import amd_hardware
from scheduler.text import shorten

_BASE = 0x7F00_0000_0000 >> 4  # start of the buffers: an address like those of drivers
_GAP = 1 << 16  # buffers share no pages
_BUFFER = "global_buffer"
Addresses = dict[tuple[int, int], int]  # by argument and member, -1 for the argument itself
_NUMBERS = {1: 8, 2: 16, 4: 32, 8: 64}


def bind_launch(
    text: LaunchSpec, program: Program, target: Target, what: str = "launch"
) -> tuple[Launch, Memory]:
    """Return the launch and its memory. Raises ``UserError`` naming what does not fit the
    kernel."""
    lds = program.lds_bytes + text.dynamic_lds_bytes
    most = amd_hardware(target).max_lds_per_block_bytes
    if lds > most:
        raise UserError(f"{what}: {lds} bytes of LDS; a block on {target.name} has {most}")
    visible_places = [place for place in program.arguments if not place.hidden]
    names = [place.name for place in visible_places]
    ordered = _order_arguments(text, visible_places, names, what)
    memory = Memory()
    addresses = _map_buffers(ordered, memory, what)
    pointers = _Pointers(addresses, names)
    arguments = []
    for number, (place, argument) in enumerate(zip(visible_places, ordered, strict=True)):
        at = f"{what}: {_name(number, names)}"
        arguments.append(_value(at, place, argument, number, pointers))
    function = program.function.name
    return Launch(function, text.grid, text.block, text.dynamic_lds_bytes, tuple(arguments)), memory


def _order_arguments(
    text: LaunchSpec, places: Sequence[Place], names: Sequence[str], what: str
) -> list[Argument]:
    if isinstance(text.arguments, tuple):
        if len(text.arguments) != len(places):
            kinds = []
            for place, name in zip(places[:24], names, strict=False):
                kind = "buffer" if place.kind == _BUFFER else f"{place.size} B"
                kinds.append(f"{shorten(name)}: {kind}" if name else kind)
            more = " …" if len(places) > len(kinds) else ""
            raise UserError(
                f"{what}: {len(text.arguments)} arguments; the kernel takes {len(places)}"
                f" ({', '.join(kinds)}{more})"
            )
        return list(text.arguments)
    unknown = text.arguments.keys() - set(names)
    if unknown:
        known = ", ".join(dict.fromkeys(filter(None, names))) or "none with a name"
        unknown_name = shorten(min(unknown))
        raise UserError(f"{what}: no argument {unknown_name}; known: {shorten(known, 600)}")
    ordered_arguments: list[Argument] = []
    for number, place in enumerate(places):
        name = names[number]
        if name in text.arguments:
            ordered_arguments.append(text.arguments[name])
        elif text.others is None:
            raise UserError(f"{what}: {_name(number, names)} is missing; set it, or others")
        else:
            ordered_arguments.append(
                None if place.kind == _BUFFER and text.others == 0 else text.others
            )
    return ordered_arguments


def _map_buffers(arguments: Sequence[Argument], memory: Memory, what: str) -> Addresses:
    """Return the address of each buffer by the number of its argument and of its member."""
    buffers: dict[tuple[int, int], Buffer] = {}
    for number, argument in enumerate(arguments):
        members = argument.members if isinstance(argument, Struct) else ()
        for place, member in ((-1, argument), *enumerate(members)):
            if isinstance(member, Buffer):
                buffers[number, place] = member
    addresses: Addresses = {}
    at = _BASE
    for position, buffer in buffers.items():
        try:
            data = pack_values(buffer.dtype, buffer.values) if buffer.values else None
        except ValueError as error:
            raise UserError(f"{what}: arguments[{position[0]}]: values: {error}") from None
        seed = position[0] + 1 + MOST_ARGUMENTS * (position[1] + 1)
        fill = None if data else random_values(buffer.dtype, seed, buffer.below)
        name = f"argument {position[0]}" + (f", member {position[1]}" if position[1] >= 0 else "")
        memory.map(name, at, buffer.bytes, data, fill)
        addresses[position] = at
        at += -(-(buffer.bytes + _GAP) // ALIGNMENT) * ALIGNMENT
    return addresses


def _value(
    at: str, place: Place, argument: Argument, number: int, pointers: _Pointers
) -> int | float | bytes:
    if isinstance(argument, tuple | bytes | Struct):
        if place.kind == _BUFFER:
            raise UserError(f"{at}: the kernel takes a buffer here, not a structure")
        return _struct_bytes(at, place.size, argument, number, pointers)
    is_pointer = argument is None or isinstance(argument, Buffer | BufferAlias)
    if place.kind == _BUFFER and not is_pointer and argument != 0:
        raise UserError(f"{at}: the kernel takes a buffer here, not a number")
    if place.kind != _BUFFER and is_pointer and place.size != 8:
        raise UserError(f"{at}: the kernel takes {place.size} bytes by value here, not a buffer")
    if argument is None or isinstance(argument, Buffer | BufferAlias):
        return pointers.address(at, argument, (number, -1))
    if argument == 0 and place.size not in _NUMBERS:
        return bytes(place.size)
    if place.size not in _NUMBERS:
        raise UserError(
            f"{at}: {place.size} bytes by value are a structure: give its numbers, if they have"
            ' one size, as [8, 8, 1], else {"bytes": "0800…"} or {"struct": […]}'
        )
    _check_range(at, argument, place.size)
    return argument


def _check_range(at: str, number: float, size: int) -> None:
    bits = _NUMBERS[size]
    if isinstance(number, int) and not -(1 << bits - 1) <= number < 1 << bits:
        raise UserError(f"{at}: {number} does not fit into {bits} bits")
    if isinstance(number, float) and not fits_float(number, size):
        raise UserError(f"{at}: {number:g} is not a float of {bits} bits")


def _struct_bytes(
    at: str,
    size: int,
    argument: tuple[int | float, ...] | bytes | Struct,
    number: int,
    pointers: _Pointers,
) -> bytes:
    """Return the bytes of a by-value argument that is not a number."""
    if isinstance(argument, tuple):
        member_size, rest = divmod(size, len(argument))
        if rest or member_size not in _NUMBERS:
            raise UserError(f"{at}: {size} bytes are not {len(argument)} numbers of one size")
        for one in argument:
            _check_range(at, one, member_size)
        data = b"".join(number_bytes(one, member_size) for one in argument)
    elif isinstance(argument, Struct):
        # Members at offsets that are multiples of their sizes, as in C, padded to a multiple of
        # the largest.
        data, largest = b"", 1
        for place, member in enumerate(argument.members):
            if isinstance(member, bytes):
                data += member
                continue
            if isinstance(member, StructNumber):
                part = member.data
            else:
                address = pointers.address(f"{at}.struct[{place}]", member, (number, place))
                part = number_bytes(address, 8)
            largest = max(largest, len(part))
            data += bytes(-len(data) % len(part)) + part
        data += bytes(-len(data) % largest)
    else:
        data = argument
    if len(data) != size:
        raise UserError(f"{at}: {len(data)} bytes are given; the kernel takes {size}")
    return data


@dataclass(frozen=True)
class _Pointers:
    """The targets of a launch's pointers."""

    addresses: Addresses
    names: Sequence[str]

    def address(self, at: str, pointer: Pointer, position: tuple[int, int]) -> int:
        """Return the address of the pointer at ``position``."""
        if pointer is None:
            return 0
        if isinstance(pointer, Buffer):
            return self.addresses[position]
        other = pointer.argument if isinstance(pointer.argument, int) else -1
        if isinstance(pointer.argument, str) and pointer.argument in self.names:
            other = list(self.names).index(pointer.argument)
        if (other, -1) not in self.addresses:
            raise UserError(f"{at}: {pointer.argument} is not an argument with its own buffer")
        return self.addresses[other, -1] + pointer.offset_bytes


def _name(number: int, names: Sequence[str]) -> str:
    name = names[number] if number < len(names) else ""
    return f"arguments[{number}]" + (f" ({shorten(name)})" if name else "")
