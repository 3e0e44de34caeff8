"""A launch's text over a kernel: its buffers mapped, its arguments as the kernel takes them."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.cycles.launches.contents import given_values, random_values
from scheduler.cycles.launches.reading import Argument, Buffer, LaunchText, Same
from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.emulator.memory import ALIGNMENT, Memory
from scheduler.isa.rocm.emulator.program import Argument as Place
from scheduler.isa.rocm.emulator.program import Program
from scheduler.outcome import UserError
from scheduler.targets import Target
from scheduler.targets.amd import amd_hardware
from scheduler.text import shortened

_BASE = 0x7F00_0000_0000 >> 4  # where buffers begin: an address as drivers give them
_GAP = 1 << 16  # nothing of one buffer's pages is another's
_BUFFER = "global_buffer"
_NUMBERS = {1: 8, 2: 16, 4: 32, 8: 64}


def placed(
    text: LaunchText, program: Program, target: Target, what: str = "launch"
) -> tuple[Launch, Memory]:
    """The launch and the memory that it reaches. Raises ``UserError`` naming what does not fit
    the kernel."""
    lds = program.lds_bytes + text.dynamic_lds_bytes
    most = amd_hardware(target).max_lds_per_block_bytes
    if lds > most:
        raise UserError(f"{what}: {lds} bytes of LDS; a block on {target.name} has {most}")
    places = [place for place in program.arguments if not place.hidden]
    names = [place.name for place in places]
    given = _in_order(text, places, names, what)
    memory = Memory()
    addresses = _mapped(given, memory, what)
    arguments = []
    for number, (place, argument) in enumerate(zip(places, given, strict=True)):
        at = f"{what}: {_name(number, names)}"
        arguments.append(_value(at, place, argument, number, addresses, names))
    function = program.function.name
    return Launch(function, text.grid, text.block, text.dynamic_lds_bytes, tuple(arguments)), memory


def _in_order(
    text: LaunchText, places: Sequence[Place], names: Sequence[str], what: str
) -> list[Argument]:
    if isinstance(text.arguments, tuple):
        if len(text.arguments) != len(places):
            raise UserError(
                f"{what}: {len(text.arguments)} arguments; the kernel takes {len(places)}"
                f" ({_kinds(places, names)})"
            )
        return list(text.arguments)
    unknown = text.arguments.keys() - set(names)
    if unknown:
        known = ", ".join(dict.fromkeys(filter(None, names))) or "none with a name"
        one = shortened(min(unknown))
        raise UserError(f"{what}: no argument {one}; the kernel's are {shortened(known, 600)}")
    found: list[Argument] = []
    for number, place in enumerate(places):
        name = names[number]
        if name in text.arguments:
            found.append(text.arguments[name])
        elif text.others is None:
            raise UserError(f"{what}: {_name(number, names)} is not given, and no others")
        else:
            found.append(None if place.kind == _BUFFER and text.others == 0 else text.others)
    return found


def _mapped(given: Sequence[Argument], memory: Memory, what: str) -> dict[int, int]:
    """The address of each buffer by the number of its argument."""
    addresses: dict[int, int] = {}
    at = _BASE
    for number, buffer in enumerate(given):
        if not isinstance(buffer, Buffer):
            continue
        try:
            data = given_values(buffer.dtype, buffer.values) if buffer.values else None
        except ValueError as error:
            raise UserError(f"{what}: arguments[{number}]: values: {error}") from None
        fill = None if data else random_values(buffer.dtype, number + 1, buffer.below)
        memory.map(f"argument {number}", at, buffer.bytes, data, fill)
        addresses[number] = at
        at += -(-(buffer.bytes + _GAP) // ALIGNMENT) * ALIGNMENT
    return addresses


def _value(
    at: str,
    place: Place,
    argument: Argument,
    number: int,
    addresses: dict[int, int],
    names: Sequence[str],
) -> int | float:
    is_pointer = argument is None or isinstance(argument, Buffer | Same)
    if place.kind == _BUFFER and not is_pointer and argument != 0:
        raise UserError(f"{at}: the kernel takes a buffer here, not a number")
    if place.kind != _BUFFER and is_pointer and place.size != 8:
        raise UserError(f"{at}: the kernel takes {place.size} bytes by value here, not a buffer")
    if argument is None:
        return 0
    if isinstance(argument, Buffer):
        return addresses[number]
    if isinstance(argument, Same):
        other = argument.argument if isinstance(argument.argument, int) else -1
        if isinstance(argument.argument, str) and argument.argument in names:
            other = list(names).index(argument.argument)
        if other not in addresses:
            raise UserError(f"{at}: {argument.argument} is no argument with a buffer of its own")
        return addresses[other] + argument.offset_bytes
    if place.size not in _NUMBERS:
        raise UserError(f"{at}: {place.size} bytes by value are no number; structures are not read")
    bits = _NUMBERS[place.size]
    if isinstance(argument, int) and not -(1 << bits - 1) <= argument < 1 << bits:
        raise UserError(f"{at}: {argument} does not fit into {bits} bits")
    return argument


def _name(number: int, names: Sequence[str]) -> str:
    name = names[number] if number < len(names) else ""
    return f"arguments[{number}]" + (f" ({shortened(name)})" if name else "")


def _kinds(places: Sequence[Place], names: Sequence[str]) -> str:
    shown = []
    for number, place in enumerate(places[:24]):
        kind = "buffer" if place.kind == _BUFFER else f"{place.size} B"
        name = names[number] if number < len(names) else ""
        shown.append(f"{shortened(name)}: {kind}" if name else kind)
    return ", ".join(shown) + (" …" if len(places) > len(shown) else "")
