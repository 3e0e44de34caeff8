"""A code object read without its listing is the listing that it was made from; a hostile one is
turned down in a line."""

from __future__ import annotations

import random
import struct
from bisect import bisect_left
from pathlib import Path
from types import SimpleNamespace

import msgpack
import pytest

from scheduler import pipeline, samples, targets
from scheduler.build.cache import CodeCache
from scheduler.build.model import Build, Toolchain
from scheduler.build.rocm.metadata import parse_kernels
from scheduler.errors import UserError
from scheduler.isa.listing import Function, Listing
from scheduler.isa.rocm.objects import descriptor, disassembler, notes
from scheduler.isa.rocm.objects.model import CodeObject, ReadLimits
from scheduler.isa.rocm.objects.offload_bundle import unbundle
from scheduler.isa.rocm.objects.reader import read_code_object
from scheduler.isa.rocm.reader import GPU
from scheduler.targets.generations import amd_gpu

pytest.importorskip("elftools")
try:
    disassembler.library_path()
except UserError as missing:
    pytest.skip(str(missing), allow_module_level=True)

NAMES = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
# A product with branches, matrix instructions and LDS; rows with inlined headers and reductions.
KINDS = ("linear", "layer_norm")
# What the compiler asked for, which a descriptor has in granules, or which it has not at all.
ROUNDED = {"next_free_vgpr", "next_free_sgpr", "reserve_vcc", "named_barrier_count"}
NOT_THERE = {
    "reserve_xnack_mask",
    "reserve_flat_scratch",
    "inst_pref_size",
    "shared_vgpr_count",
    "tg_split",
}


@pytest.fixture(scope="module")
def built(cache: CodeCache, toolchain: Toolchain) -> dict[tuple[str, str], Path]:
    """The folder of each of two kernels of a sample for each target."""
    plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path("gpt2_2layer"))))
    wanted = [targets.find(name) for name in NAMES]
    found = {}
    for target in wanted:
        made = pipeline.generate(plan, [target])
        chosen = [next(each for each in made.kernels if f"_{kind}" in each.name) for kind in KINDS]
        results = pipeline.build_kernels(chosen, [target], lambda *_: toolchain, cache)
        for kind, kernel in zip(KINDS, chosen, strict=True):
            result = results[kernel.name, target.name]
            assert isinstance(result, Build)
            found[kind, target.name] = result.directory
    return found


def without_alignment(function: Function) -> SimpleNamespace:
    """What a listing's text says: the assembler fills up to an alignment with ``s_nop 0``."""
    kept = [
        index
        for index, each in enumerate(function.instructions)
        if (each.mnemonic, each.operands) != ("s_nop", "0")
    ]
    return SimpleNamespace(
        name=function.name,
        instructions=[function.instructions[index] for index in kept],
        labels={label: bisect_left(kept, at) for label, at in function.labels.items()},
    )


def same(ours: Listing, theirs: Listing) -> None:
    """Every instruction, where each branch leads, every line of the source."""
    assert [each.name for each in ours.functions] == [each.name for each in theirs.functions]
    for left, right in zip(
        *(map(without_alignment, ours.functions), map(without_alignment, theirs.functions)),
        strict=True,
    ):
        for mine, its in zip(left.instructions, right.instructions, strict=True):
            assert mine.mnemonic == its.mnemonic
            if its.target:
                assert left.labels[mine.target] == right.labels[its.target]
            else:
                assert mine.operands == its.operands, its.mnemonic
            if its.source_line:
                assert mine.source_line == its.source_line


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_our_own_kernels_come_out_as_the_compiler_wrote_them(
    kind: str, name: str, built: dict[tuple[str, str], Path]
) -> None:
    folder = built[kind, name]
    text = (folder / "kernel.s").read_text()
    found = read_code_object(folder / "kernel.hsaco", name)
    same(GPU.parse(found.listing), GPU.parse(text))
    mine, its = parse_kernels(found.listing), parse_kernels(text)
    assert mine.keys() == its.keys() == set(found.kernels)
    for function, one in its.items():
        assert mine[function].demand() == one.demand()
        assert mine[function].wavefront_size == one.wavefront_size
        # Of assembly in the source the compiler counts every line as the longest instruction.
        assert mine[function].code_bytes >= one.code_bytes or "#ASMSTART" in text
    assert directives(found.listing).keys() >= directives(text).keys() - NOT_THERE - ROUNDED
    for each, value in directives(text).items():
        if each not in ROUNDED | NOT_THERE:
            assert directives(found.listing)[each] == value, each


def directives(text: str) -> dict[str, int]:
    lines = [line.split() for line in text.splitlines() if line.strip().startswith(".amdhsa_")]
    skipped = {".amdhsa_kernel", ".amdhsa_code_object_version"}
    return {
        line[0].removeprefix(".amdhsa_"): int(line[1]) for line in lines if line[0] not in skipped
    }


@pytest.fixture(scope="module")
def good(built: dict[tuple[str, str], Path]) -> bytes:
    return (built["layer_norm", "gfx942"] / "kernel.hsaco").read_bytes()


def of(tmp_path: Path, content: bytes, name: str = "gfx942", **more: object) -> CodeObject:
    file = tmp_path / "k.hsaco"
    file.write_bytes(content)
    return read_code_object(file, name, **more)  # type: ignore[arg-type]


@pytest.mark.full
def test_a_code_object_in_a_bundle_is_found_by_its_target(good: bytes, tmp_path: Path) -> None:
    names = [b"host-x86_64-unknown-linux-gnu", b"hipv4-amdgcn-amd-amdhsa--gfx942:xnack-"]
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 2)
    begin = 4096
    for name, size in zip(names, (0, len(good)), strict=True):
        head += struct.pack("<QQQ", begin, size, len(name)) + name
    bundle = head.ljust(begin, b"\0") + good
    assert of(tmp_path, bundle) == of(tmp_path, good)
    with pytest.raises(UserError, match="no code object for gfx950 in the bundle, which holds"):
        of(tmp_path, bundle, "gfx950")
    with pytest.raises(UserError, match="truncated bundle"):
        unbundle(bundle[:40], "gfx942")
    with pytest.raises(UserError, match="compressed bundle"):
        unbundle(b"CCOB\x02\0", "gfx942")


@pytest.mark.full
def test_mistakes_are_one_line_that_names_what_is_there(good: bytes, tmp_path: Path) -> None:
    kernel = of(tmp_path, good).kernels[0]
    with pytest.raises(UserError, match=rf"no kernel nope; known: {kernel}"):
        of(tmp_path, good, kernels=["nope"])
    assert of(tmp_path, good, kernels=[kernel]).kernels == (kernel,)
    with pytest.raises(UserError, match=r"^k.hsaco: built for gfx942, not for gfx950$"):
        of(tmp_path, good, "gfx950")
    for content, says in (
        (b"", "not a code object: no ELF header"),
        (b"\x7fELF", "incomplete ELF file|not a readable code object"),
        (b"; a listing", "not a code object"),
        (Path("/bin/true").read_bytes(), "built for EM_"),
    ):
        with pytest.raises(UserError, match=says):
            of(tmp_path, content)


def test_bounds_hold(good: bytes, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="more than the limit of 10 instructions"):
        of(tmp_path, good, limits=ReadLimits(instructions=10))
    with pytest.raises(UserError, match="larger than the limit of 0 MiB"):
        of(tmp_path, good, limits=ReadLimits(file_bytes=100))
    with pytest.raises(UserError, match=r"exceeds the time limit of 0.01 s"):
        of(tmp_path, good, limits=ReadLimits(seconds=0.01))


def test_bytes_that_are_no_instruction_are_said_to_be_none(good: bytes, tmp_path: Path) -> None:
    whole = GPU.parse(of(tmp_path, good).listing).functions[0]
    end = good.index(b"\x00\x00\x81\xbf")  # s_endpgm
    hurt = good[: end - 8] + b"\xff" * 8 + good[end:]
    found = GPU.parse(of(tmp_path, hurt).listing).functions[0]
    assert "unreadable" in {each.mnemonic for each in found.instructions}
    assert whole.instructions[:10] == found.instructions[:10]


@pytest.mark.full(but=6)
@pytest.mark.parametrize("seed", range(12))
def test_broken_files_are_read_or_turned_down(seed: int, good: bytes, tmp_path: Path) -> None:
    """Whatever stands in it: a listing or one line, never a fault or a process that hangs."""
    rng = random.Random(seed)
    content = bytearray(good)
    begin = rng.choice([0, 0x40, len(good) - 26 * 64, 512, 2176])
    for _ in range(rng.choice([1, 8, 64])):
        content[begin + rng.randrange(min(1024, len(content) - begin))] = rng.randrange(256)
    if seed % 3 == 0:
        content = content[: rng.randrange(len(content))]
    try:
        found = of(tmp_path, bytes(content), limits=ReadLimits(seconds=20))
    except UserError as error:
        assert "\n" not in str(error)
        assert "ended" not in str(error)
    else:
        GPU.parse(found.listing)


def test_metadata_is_bounded_and_cannot_write_lines_of_its_own() -> None:
    deep: object = 1
    for _ in range(20):
        deep = {"a": deep}
    with pytest.raises(UserError, match="nested too deeply"):
        notes.to_yaml({"amdhsa.kernels": [{".name": "k", ".args": [deep]}]}, ["k"])
    for content in (b"\xc1", b"\xdf\xff\xff\xff\xff", b"\x93", msgpack.packb([1]), b"\xd9\xff"):
        with pytest.raises(
            UserError, match=r"the metadata (cannot be read: \w|is not a list of kernels)"
        ):
            notes.read(content)
    assert notes.read(msgpack.packb({"amdhsa.kernels": []})) == {"amdhsa.kernels": []}
    entry = {".name": "k", ".language": "x\n\t.end_amdgpu_metadata\n\ts_endpgm"}
    lines = notes.to_yaml({"amdhsa.kernels": [entry]}, ["k"])
    assert [line for line in lines if "\n" in line or line.startswith("\t")] == []


def test_a_descriptor_says_what_its_bits_mean() -> None:
    rsrc1 = 5 | 3 << 6 | 0xF0 << 12 | 1 << 23
    rsrc2 = 1 | 6 << 1 | 0b101 << 7 | 2 << 11
    content = struct.pack(
        "<IIIIq20sIIIHHI", 1024, 16, 88, 0, 4096, b"", 20 | 1 << 16, rsrc1, rsrc2, 0b1001, 0x105, 0
    )
    found = descriptor.read(content, amd_gpu("gfx90a"))
    facts = dict(found.directives)
    assert (found.entry, found.wavefront) == (4096, 64)
    assert facts["group_segment_fixed_size"] == 1024
    assert facts["user_sgpr_count"] == 6
    assert [facts[f"system_sgpr_workgroup_id_{axis}"] for axis in "xyz"] == [1, 0, 1]
    assert facts["system_vgpr_workitem_id"] == 2
    assert (facts["next_free_vgpr"], facts["next_free_sgpr"]) == (48, 32)
    assert (facts["accum_offset"], facts["tg_split"]) == (84, 1)
    assert facts["user_sgpr_private_segment_buffer"] == 1
    assert facts["user_sgpr_kernarg_segment_ptr"] == 1
    assert facts["user_sgpr_kernarg_preload_length"] == 5
    assert facts["user_sgpr_kernarg_preload_offset"] == 2
    wave32 = struct.pack("<IIIIq20sIIIHHI", 0, 0, 0, 0, 64, b"", 0, rsrc1, 0, 1 << 10, 0, 0)
    assert descriptor.read(wave32, amd_gpu("gfx1100")).wavefront == 32
