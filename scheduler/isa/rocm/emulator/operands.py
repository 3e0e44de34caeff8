"""Parses the operands of an instruction from a listing's text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType


class RegisterFile(StrEnum):
    """The register file of an operand."""

    VECTOR = "v"
    ACCUMULATION = "a"
    SCALAR = "s"
    CONSTANT = "constant"
    OFF = "off"
    OTHER = "other"  # a label, a symbol, or anything unknown


# Scalar registers by number, as in the state: s0 to s105, then the named ones.
VCC, TTMP, NULL, M0, EXEC = 106, 108, 124, 125, 126
SCC, VCCZ, EXECZ, ZERO64 = 128, 129, 130, 131
SCALARS = 136
_NAMED: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        **{"vcc": (VCC, 2), "vcc_lo": (VCC, 1), "vcc_hi": (VCC + 1, 1)},
        **{"exec": (EXEC, 2), "exec_lo": (EXEC, 1), "exec_hi": (EXEC + 1, 1)},
        **{"m0": (M0, 1), "null": (NULL, 1), "flat_scratch": (102, 2)},
        **{"flat_scratch_lo": (102, 1), "flat_scratch_hi": (103, 1)},
        **{"xnack_mask": (104, 2), "xnack_mask_lo": (104, 1), "xnack_mask_hi": (105, 1)},
        **{"scc": (SCC, 1), "src_scc": (SCC, 1), "vccz": (VCCZ, 1), "src_vccz": (VCCZ, 1)},
        **{"execz": (EXECZ, 1), "src_execz": (EXECZ, 1)},
    }
)
# The emulator's choice for the upper halves of generic addresses of LDS and of scratch.
SHARED_APERTURE, PRIVATE_APERTURE = 0x0001_0000, 0x0002_0000
_APERTURES = {"src_shared_base": SHARED_APERTURE, "src_private_base": PRIVATE_APERTURE}

_REGISTER = re.compile(r"([vas]|ttmp)(?:(\d+)|\[(\d+)(?::(\d+))?\])(\.l|\.h)?")
_HEXADECIMAL = re.compile(r"-?0x[0-9a-fA-F]{1,16}")
_DECIMAL = re.compile(r"-?\d{1,20}")
_FLOAT = re.compile(r"-?\d{1,20}\.\d{0,20}(?:e[-+]?\d{1,3})?")
_CONSTANTS: tuple[tuple[re.Pattern[str], Callable[[str], int | float], bool], ...] = (
    (_HEXADECIMAL, lambda text: int(text, 16), True),
    (_DECIMAL, int, False),
    (_FLOAT, float, False),
)
_WRAPPED = re.compile(r"(abs|neg|sext|lit|lit64)\((.*)\)")
_MAX_REGISTER = 1024
_MAX_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand. For registers ``index`` is the first of ``count``; a constant's ``value`` is as
    written (``literal``: in hexadecimal, that is, its bits). ``half`` is "l" or "h"."""

    file: RegisterFile
    index: int = 0
    count: int = 1
    value: int | float = 0
    literal: bool = False
    half: str = ""
    negative: bool = False
    absolute: bool = False
    extended: bool = False
    text: str = ""


@dataclass(frozen=True)
class Operands:
    """What follows a mnemonic. ``modifiers`` have values, by name (a single number is a tuple of
    one); others are in ``words``: ``{"offset": (16,)}``, ``{"glc"}``."""

    operands: tuple[Operand, ...]
    modifiers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    words: frozenset[str] = frozenset()

    def number(self, name: str, default: int = 0) -> int:
        """Return a modifier's first value."""
        values = self.modifiers.get(name)
        return values[0] if values else default


def parse(text: str) -> Operands:
    """Parse the operands of one instruction (of one half of a dual one). It raises nothing."""
    parts = _split(text, ",")
    if not parts:
        return Operands(())
    operands = [parse_operand(part) for part in parts[:-1]]
    modifiers: dict[str, tuple[int, ...]] = {}
    words: set[str] = set()
    for position, word in enumerate(_split(parts[-1], " \t")):
        is_modifier = ":" in word and "[" not in word.partition(":")[0]
        if position == 0 and not is_modifier:
            operands.append(parse_operand(word))
            continue
        name, _, value = word.partition(":")
        numbers = [number.strip() for number in value.strip("[]").split(",")]
        if all(_HEXADECIMAL.fullmatch(each) or _DECIMAL.fullmatch(each) for each in numbers):
            modifiers[name] = tuple(
                int(each, 16 if _HEXADECIMAL.fullmatch(each) else 10) for each in numbers
            )
        else:
            words.add(word)
    return Operands(tuple(operands), modifiers, frozenset(words))


def _split(text: str, separators: str) -> list[str]:
    """Split at separators outside all brackets; empty parts are dropped."""
    parts, start, depth = [], 0, 0
    for position, letter in enumerate(text):
        if letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        elif depth == 0 and letter in separators:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def parse_operand(text: str) -> Operand:
    """Parse one operand with its prefix and suffix."""
    text = text.strip()
    if len(text) > _MAX_LENGTH:
        return Operand(RegisterFile.OTHER, text=text[:_MAX_LENGTH])
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped:
        inner = parse_operand(wrapped[2])
        return replace(
            inner,
            absolute=inner.absolute or wrapped[1] == "abs",
            negative=inner.negative or wrapped[1] == "neg",
            extended=inner.extended or wrapped[1] == "sext",
        )
    if len(text) > 2 and text[0] == "|" and text[-1] == "|":
        return replace(parse_operand(text[1:-1]), absolute=True)
    if (text.startswith("-") and text[1:2].isalpha()) or text.startswith("-|"):
        return replace(parse_operand(text[1:]), negative=True)
    for pattern, read, literal in _CONSTANTS:
        if pattern.fullmatch(text):
            return Operand(RegisterFile.CONSTANT, value=read(text), literal=literal, text=text)
    if text in _APERTURES:
        return Operand(RegisterFile.CONSTANT, value=_APERTURES[text] << 32, literal=True, text=text)
    if text == "off":
        return Operand(RegisterFile.OFF, text=text)
    return _parse_register(text) or Operand(RegisterFile.OTHER, text=text)


def _parse_register(text: str) -> Operand | None:
    """Parse registers by number or by name; None for others, and for numbers that do not exist."""
    bare, _, half = text.partition(".")
    if bare in _NAMED and half in ("", "l", "h"):
        index, count = _NAMED[bare]
        return Operand(RegisterFile.SCALAR, index, count, half=half, text=text)
    match = _REGISTER.fullmatch(text)
    if not match:
        return None
    first = int((match[2] or match[3])[:6])
    last = int(match[4][:6]) if match[4] else first
    if last < first or last >= _MAX_REGISTER:
        return None
    file = RegisterFile.SCALAR
    if match[1] in "va":
        file = RegisterFile(match[1])
    else:
        if match[1] == "ttmp":
            first, last = first + TTMP, last + TTMP
        if last >= NULL or (match[1] == "s" and last >= VCC):
            return None
    return Operand(file, first, last - first + 1, half=(match[5] or "").lstrip("."), text=text)
