"""Debug lines of a code object: DWARF's line table, and inlined calls."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from elftools.dwarf.ranges import BaseAddressEntry
from elftools.elf.elffile import ELFFile

from scheduler.isa.rocm.objects.model import LineTable, SourceLocation
from scheduler.text import one_line

_MOST_FILES = 1000
_DWARF_5 = 5


def read_lines(file: ELFFile) -> LineTable:
    """Return the lines of the first unit that has some. Raises what pyelftools raises for broken
    ones."""
    if not file.has_dwarf_info():
        return LineTable()
    dwarf = file.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        files, source = _files(program, unit)
        calls = _Calls(_calls(unit, source))
        places: dict[int, SourceLocation] = {}
        for entry in program.get_entries():
            state = entry.state
            if state is None or state.end_sequence:
                continue
            in_source = state.file == source and state.line != 0
            call = None if in_source else calls.find_call(state.address)
            places[state.address] = SourceLocation(state.file, state.line, state.column, call)
        if places:
            order = {source: 0}
            for place in places.values():
                order.setdefault(place.file, len(order))
            return LineTable(
                tuple(files.get(number, ("", "unknown")) for number in order),
                {
                    at: SourceLocation(order[place.file], place.line, place.column, place.call)
                    for at, place in places.items()
                },
            )
    return LineTable()


def _files(program: Any, unit: Any) -> tuple[dict[int, tuple[str, str]], int]:
    """Return files by their numbers, and the number of the source itself."""
    header = program.header
    first = 0 if header["version"] >= _DWARF_5 else 1
    folders = [_text(folder) for folder in header["include_directory"]]
    files = {}
    for number, entry in enumerate(header["file_entry"][:_MOST_FILES], first):
        at = entry.dir_index - first
        folder = folders[at] if 0 <= at < len(folders) else ""
        files[number] = (folder, _text(entry.name))
    if header["version"] >= _DWARF_5:
        return files, 0
    name = unit.get_top_DIE().attributes.get("DW_AT_name")
    asked = PurePosixPath(_text(name.value)).name if name else ""
    for number, (_, file) in files.items():
        if PurePosixPath(file).name == asked:
            return files, number
    return files, first


def _text(value: bytes) -> str:
    return one_line(value.decode("utf-8", "replace")).replace('"', "'")


class _Calls:
    """Code ranges inlined from calls in the source; the innermost counts."""

    def __init__(self, found: Iterator[tuple[int, int, tuple[int, int]]]) -> None:
        self._found = sorted(found, key=lambda each: (each[0], -each[1]))
        self._begins = [begin for begin, _, _ in self._found]

    def find_call(self, address: int) -> tuple[int, int] | None:
        """Return line and column of the call whose code is at an address; ranges nest."""
        position = bisect_right(self._begins, address)
        for begin, end, call in reversed(self._found[max(0, position - 256) : position]):
            if begin <= address < end:
                return call
        return None


def _calls(unit: Any, source: int) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Yield code inlined by calls in the source: start, end, line and column of the call."""
    ranges = unit.dwarfinfo.range_lists()
    base = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
    for die in unit.iter_DIEs():
        if die.tag != "DW_TAG_inlined_subroutine":
            continue
        attributes = die.attributes
        if "DW_AT_call_line" not in attributes or attributes["DW_AT_call_file"].value != source:
            continue
        column = attributes.get("DW_AT_call_column")
        call = (attributes["DW_AT_call_line"].value, column.value if column else 0)
        for begin, end in _ranges(die, unit, ranges, base.value if base else 0):
            yield begin, end, call


def _ranges(die: Any, unit: Any, ranges: Any, base: int) -> Iterator[tuple[int, int]]:
    attributes = die.attributes
    if "DW_AT_ranges" in attributes:
        for entry in ranges.get_range_list_at_offset(attributes["DW_AT_ranges"].value, unit):
            if isinstance(entry, BaseAddressEntry):
                base = entry.base_address
            elif entry.is_absolute:
                yield entry.begin_offset, entry.end_offset
            else:
                yield base + entry.begin_offset, base + entry.end_offset
    elif "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        begin, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
        yield begin, high.value if high.form == "DW_FORM_addr" else begin + high.value
