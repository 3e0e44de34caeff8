"""Writes a code object's listing as the compiler would have written it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.errors import UserError
from scheduler.isa.rocm.instruction_set.table import falls_through
from scheduler.isa.rocm.objects import descriptor, disassembler, notes
from scheduler.isa.rocm.objects.model import (
    CodeObject,
    FunctionCode,
    Image,
    ReadLimits,
    SourceLocation,
)
from scheduler.targets.generations import amd_gpu
from scheduler.text import shorten

_BRANCH = re.compile(r"(s_branch|s_cbranch_\w+|s_call_b64)\b(.*?)(\d+)")
# Spellings in which the disassembler differs from compilers: an offset of 0 (RDNA's SMEM has a null
# register instead), a barrier's number, the halves of registers (repeated as op_sel).
_SPELLINGS = (
    (re.compile(r"(s_load_\w+ \S+ \S+) null"), r"\1 0x0"),
    (re.compile(r"(s_barrier_wait) 0xffff"), r"\1 -1"),
    (re.compile(r"(.*\bv\d+\.[lh]\b.*) op_sel:\[[01,]+\]"), r"\1"),
)
_NAME = re.compile(r"[A-Za-z_.$][\w.$@]*")
UNREADABLE = "unreadable"  # the mnemonic for bytes that are no instruction of the processor


@dataclass(frozen=True)
class _Line:
    offset: int
    text: str
    target: int | None


def write_listing(
    image: Image, library: Any, limits: ReadLimits, asked: Sequence[str] = ()
) -> CodeObject:
    """Return the listing of the requested kernels, or of all, with functions that are no kernels
    (they may be called). Raises ``UserError`` that lists the kernels if one is missing."""
    kernels = [code.name for code in image.functions if code.descriptor]
    for name in asked:
        if name not in kernels:
            there = ", ".join(map(shorten, kernels[:20])) or "none"
            raise UserError(f"no kernel {shorten(name)}; known: {there}")
    chosen = [
        code for code in image.functions if not (asked and code.descriptor) or code.name in asked
    ]
    for code in chosen:
        if not _NAME.fullmatch(code.name):
            raise UserError(f"invalid function name: {shorten(code.name)}")
    lines = [
        f'\t.amdgcn_target "amdgcn-amd-amdhsa--{image.processor}"',
        *(
            f'\t.file\t{number} "{folder}" "{name}"'
            for number, (folder, name) in enumerate(image.lines.files)
        ),
        "\t.text",
    ]
    remaining = limits.instructions
    for number, code in enumerate(chosen):
        body = list(_function(code, number, image, library))
        remaining -= len(body)
        if remaining < 0:
            raise UserError(
                f"more than the limit of {limits.instructions} instructions: name a kernel"
            )
        lines += body
    names = [code.name for code in chosen if code.descriptor]
    lines += ["\t.amdgpu_metadata", "---", *notes.to_yaml(image.metadata, names)]
    lines += ["...", "", "\t.end_amdgpu_metadata", ""]
    return CodeObject(
        image.processor, "\n".join(lines), tuple(names), len(image.functions) - len(chosen)
    )


def _function(code: FunctionCode, number: int, image: Image, library: Any) -> Iterator[str]:
    settings = (
        descriptor.read(code.descriptor, amd_gpu(image.processor)) if code.descriptor else None
    )
    if settings:
        wavefront = settings.wavefront
    else:  # that of the kernels, which call it
        kernels = notes.kernel_entries(image.metadata)
        wavefront = next((32 for kernel in kernels if kernel.get(".wavefront_size") == 32), 64)
    body = list(_disassemble(code, library, image.processor, wavefront))
    # Drop the padding after the last instruction that ends a wave or jumps.
    ends = (n for n, line in enumerate(body, 1) if not falls_through(line.text.partition(" ")[0]))
    body = body[: max(ends, default=len(body))]
    # Branch targets that are instructions of the function.
    there = {line.offset for line in body}
    targets = {line.target for line in body if line.target is not None} & there
    labels = {at: f".LBB{number}_{count}" for count, at in enumerate(sorted(targets), 1)}
    yield f"\t.type\t{code.name},@function ; -- Begin function {code.name}"
    yield f"{code.name}:"
    shown: SourceLocation | None = None
    for line in body:
        if line.offset in labels:
            yield f"{labels[line.offset]}:"
        place = image.lines.places.get(code.address + line.offset)
        if place and place != shown:
            folder, name = image.lines.files[place.file]
            position = f"{place.line}:{place.column}"
            call = ""
            if place.call:
                call_line, call_column = place.call
                call = f" @[ {image.lines.files[0][1]}:{call_line}:{call_column} ]"
            yield (
                f"\t.loc\t{place.file} {place.line} {place.column}"
                f" ; {folder}/{name}:{position}{call}"
            )
            shown = place
        if line.target in labels:
            yield f"\t{line.text.rpartition(' ')[0]} {labels[line.target]}"
        else:
            yield f"\t{line.text}"
    yield f".Lfunc_end{number}:"
    yield f"\t.size\t{code.name}, .Lfunc_end{number}-{code.name}"
    if settings:
        yield f"\t.amdhsa_kernel {code.name}"
        for name, value in settings.directives:
            yield f"\t\t.amdhsa_{name} {value}"
        yield "\t.end_amdhsa_kernel"
    yield f"; codeLenInByte = {len(code.content)}"


def _disassemble(
    code: FunctionCode, library: Any, processor: str, wavefront: int
) -> Iterator[_Line]:
    instructions = disassembler.instructions(library, code.content, processor, wavefront)
    for offset, size, text in instructions:
        if not text:
            word = code.content[offset : offset + size]
            yield _Line(offset, f"{UNREADABLE} 0x{word[::-1].hex()}", None)
            continue
        branch = _BRANCH.fullmatch(text)
        target = None
        if branch:
            words = int(branch[3]) & 0xFFFF
            words -= (words & 0x8000) << 1
            target = offset + size + 4 * words
        spelling = text
        for pattern, replacement in _SPELLINGS:
            spelling = pattern.sub(replacement, spelling)
        yield _Line(offset, spelling, target)
