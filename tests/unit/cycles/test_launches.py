"""A launch in JSON says what a kernel is started with, or one line says where it is wrong."""

from __future__ import annotations

import ctypes
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler import targets
from scheduler.cycles.kernel_file import read_kernels
from scheduler.cycles.launches.binding import bind_launch
from scheduler.cycles.launches.parser import LaunchSpec, read_launch
from scheduler.errors import UserError
from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.emulator.memory import Memory
from scheduler.isa.rocm.emulator.program import program_of
from scheduler.isa.rocm.emulator.wave_init import kernarg_segment

GFX942 = targets.find("gfx942")
ARGUMENTS = (
    ("x", 0, 8, "global_buffer"),
    ("y", 8, 8, "global_buffer"),
    ("n", 16, 4, "by_value"),
    ("scale", 20, 4, "by_value"),
    ("pad", 24, 8, "by_value"),
    ("state", 32, 24, "by_value"),
    ("", 56, 4, "hidden_block_count_x"),
)


def listing(arguments: Any = ARGUMENTS[:5], lds: int = 1024) -> str:
    lines = ['\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"', "\t.text"]
    lines += ["\t.type\tk,@function", "k:", "\ts_endpgm", ".Lfunc_end0:", "\t.amdhsa_kernel k"]
    lines += [f"\t\t.amdhsa_group_segment_fixed_size {lds}", "\t.end_amdhsa_kernel"]
    lines += ["\t.amdgpu_metadata", "---", "amdhsa.kernels:", "  - .args:"]
    for name, offset, size, kind in arguments:
        lines += [f"      - .name: {name}"] if name else []
        first = "        " if name else "      - "
        lines += [f"{first}.offset: {offset}", f"        .size: {size}"]
        lines += [f"        .value_kind: {kind}"]
    return "\n".join([*lines, "    .name: k", "...", "\t.end_amdgpu_metadata", ""])


def launch(arguments: Any, **more: Any) -> str:
    return json.dumps({"grid": [4, 2], "block": [64], "arguments": arguments, **more})


def of(text: str, code: str | None = None) -> tuple[Launch, Memory]:
    return bind_launch(read_launch(text), program_of(code or listing(), "k"), GFX942)


F16 = {"buffer": "float16", "shape": [16, 64]}


def test_arguments_by_position_and_by_name_are_the_same_launch() -> None:
    ordered, memory = of(launch([F16, F16, 7, 0.5, 0], dynamic_lds_bytes=64))
    named, _ = of(
        launch({"scale": 0.5, "y": F16, "x": F16, "n": 7}, others=0, dynamic_lds_bytes=64)
    )
    assert ordered == named
    assert (ordered.function, ordered.grid, ordered.block) == ("k", (4, 2, 1), (64, 1, 1))
    assert ordered.dynamic_lds_bytes == 64
    x, y = ordered.arguments[:2]
    assert [region.size for region in memory.regions] == [2048, 2048]
    assert [region.address for region in memory.regions] == [x, y]
    segment = kernarg_segment(program_of(listing(), "k"), ordered)
    assert struct.unpack_from("<QQif", segment) == (x, y, 7, 0.5)


def test_what_is_in_memory() -> None:
    given = {"buffer": "int32", "elements": 4, "values": [1, -2, 3]}
    table = {"buffer": "int64", "elements": 4096, "below": 5}
    code = listing((("a", 0, 8, "global_buffer"), ("b", 8, 8, "global_buffer"), *ARGUMENTS[:2]))
    same = {"same_as": "a", "offset_bytes": 4}
    made, memory = of(launch([given, table, same, None]), code)
    a, b, c, d = (int(value) for value in made.arguments)
    assert struct.unpack("<4i", memory.read(a, 16)) == (1, -2, 3, 0)
    drawn = struct.unpack("<4096q", memory.read(b, 8 * 4096))
    assert set(drawn) == {0, 1, 2, 3, 4}
    assert (c, d) == (a + 4, 0)
    floats = {"buffer": "bfloat16", "elements": 100, "values": [1.0, -2.0]}
    made, memory = of(launch([floats, F16, 1, 1.0, 0]))
    assert memory.read(int(made.arguments[0]), 6) == b"\x80\x3f\x00\xc0\x00\x00"
    half = struct.unpack("<1024e", memory.read(int(made.arguments[1]), 2048))
    assert 0.5 < max(half) < 8
    assert len(set(half)) > 500
    again = of(launch([floats, F16, 1, 1.0, 0]))[1]
    assert again.read(int(made.arguments[1]), 2048) == memory.read(int(made.arguments[1]), 2048)


def test_a_buffer_takes_no_memory_before_it_is_touched() -> None:
    huge = {"buffer": "float32", "elements": 1 << 38}
    made, memory = of(launch([huge, huge, 1, 1.0, 0]))
    assert memory.regions[0].size == 1 << 40
    assert len(memory.read(int(made.arguments[1]) + (1 << 39), 64)) == 64


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[", "launch: not valid JSON"),
        ("[]", "launch: .* is not of type 'object'"),
        ("{}", "launch: 'grid' is a required property"),
        (launch([], grid=[0]), "launch: grid\\[0\\]: 0 is less than the minimum"),
        (launch([], block=[32, 32, 2]), "launch: block: 2048 threads; the limit is 1024"),
        (launch([], blok=1), "launch: .*'blok' was unexpected"),
        (launch(["x"]), r"launch: arguments\[0\]: an argument is a number, null, \{"),
        (launch([{"buffer": "half", "elements": 1}]), r"arguments\[0\]: unknown type half; known"),
        (launch([{"buffer": "int8"}]), r"arguments\[0\]: give either elements or shape"),
        (launch([{**F16, "below": 3}]), r"arguments\[0\]: below: for integers only"),
        (launch([{**F16, "values": [1] * 1025}]), r"1025 values for 1024 elements"),
        (launch([{"buffer": "float64", "elements": 1 << 38}]), "larger than 1 TiB"),
        (launch([1], others=1), "others: for named arguments only"),
        ('{"grid": [1], "block": [1], "arguments": [NaN]}', "NaN is not a JSON number"),
        ("[" * 100_000, "launch: not valid JSON"),
        (" " * (1 << 21), "launch: larger than 1 MiB"),
    ],
)
def test_what_is_no_launch_is_said_with_its_place(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        read_launch(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (launch([F16]), r"1 arguments; the kernel takes 5 \(x: buffer, y: buffer, n: 4 B, scale"),
        (launch({"z": 1}), "no argument z; known: x, y, n, scale, pad"),
        (launch({"x": F16}), r"arguments\[1\] \(y\) is missing; set it, or others"),
        (launch([1, F16, 1, 1.0, 0]), r"arguments\[0\] \(x\): the kernel takes a buffer here"),
        (launch([F16, F16, F16, 1.0, 0]), r"\(n\): the kernel takes 4 bytes by value here"),
        (launch([F16, F16, 1 << 33, 1.0, 0]), r"\(n\): 8589934592 does not fit into 32 bits"),
        (
            launch([F16, {"same_as": 3}, 1, 1.0, 0]),
            r"\(y\): 3 is not an argument with its own buffer",
        ),
        (launch([F16, F16, 1, 1.0, 0], dynamic_lds_bytes=65536), "66560 bytes of LDS; a block on"),
        (
            launch([{"buffer": "int8", "elements": 2, "values": [300]}, F16, 1, 1.0, 0]),
            "300 is not an int8",
        ),
    ],
)
def test_what_does_not_fit_the_kernel_is_said_with_its_argument(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        of(text)


STRUCTURES = (
    ("x", 0, 8, "global_buffer"),
    ("blocks", 8, 12, "by_value"),
    ("problem", 24, 40, "by_value"),
    ("", 64, 4, "hidden_block_count_x"),
)


def segment(arguments: Any, **more: Any) -> tuple[bytes, Memory]:
    code = listing(STRUCTURES)
    made, memory = of(launch(arguments, **more), code)
    return kernarg_segment(program_of(code, "k"), made), memory


def test_a_structure_of_numbers_of_one_size_is_a_list_of_them() -> None:
    found, _ = segment([F16, [8, -1, 2], [0.5, 1.5, 2.5, 3.5, 4]])
    assert struct.unpack_from("<Ii I", found, 8) == (8, -1, 2)
    assert struct.unpack_from("<4dq", found, 24) == (0.5, 1.5, 2.5, 3.5, 4)
    assert struct.unpack_from("<I", found, 64) == (4,), "what follows stays where it is"


def test_a_structure_is_its_bytes() -> None:
    for text in ("08000000 ffffffff 02000000", "08000000FFFFFFFF\n02000000"):
        found, _ = segment({"x": F16, "blocks": {"bytes": text}}, others=0)
        assert struct.unpack_from("<IiI", found, 8) == (8, -1, 2)
        assert found[24:64] == bytes(40), "0 for the others is a structure of zeros"


def test_a_structure_has_members_as_c_lays_them_out() -> None:
    """ctypes lays it out the same way."""

    class Problem(ctypes.Structure):
        _fields_ = (
            ("a", ctypes.c_uint64),
            ("k", ctypes.c_int16),
            ("b", ctypes.c_uint64),
            ("scale", ctypes.c_float),
            ("flag", ctypes.c_int8),
            ("c", ctypes.c_uint64),
        )

    assert ctypes.sizeof(Problem) == 40
    members = [
        {"buffer": "int32", "elements": 2, "values": [7, 9]},
        {"type": "int16", "value": -3},
        {"same_as": "x", "offset_bytes": 16},
        {"type": "float32", "value": 0.5},
        {"type": "int8", "value": 1},
        None,
    ]
    found, memory = segment([F16, [8, 8, 2], {"struct": members}])
    problem = Problem.from_buffer_copy(found, 24)
    x = struct.unpack_from("<Q", found)[0]
    assert struct.unpack("<2i", memory.read(problem.a, 8)) == (7, 9)
    assert (problem.k, problem.b, problem.scale, problem.flag) == (-3, x + 16, 0.5, 1)
    assert problem.c == 0
    assert len({region.address for region in memory.regions}) == 2


_TYPES = {
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


@given(st.lists(st.tuples(st.sampled_from(sorted(_TYPES)), st.integers(-99, 99)), min_size=1))
def test_offsets_and_size_of_any_structure_are_cs(members: list[tuple[str, int]]) -> None:
    parts = [(f"m{n}", _TYPES[name]) for n, (name, _) in enumerate(members)]
    made = type("Made", (ctypes.Structure,), {"_fields_": parts})
    size = ctypes.sizeof(made)
    code = listing((("s", 0, size, "by_value"),))
    content = {"struct": [{"type": name, "value": value} for name, value in members]}
    found, _ = of(launch([content]), code)
    read = made.from_buffer_copy(kernarg_segment(program_of(code, "k"), found))
    assert [getattr(read, name) for name, _ in parts] == [value for _, value in members]


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        (1, r"\(blocks\): 12 bytes by value are a structure: give its numbers, if they have"),
        ([8, 8], r"\(blocks\): 12 bytes are not 2 numbers of one size"),
        ([1 << 32, 8, 2], r"\(blocks\): 4294967296 does not fit into 32 bits"),
        ([1e300, 8, 2], r"\(blocks\): 1e\+300 is not a float of 32 bits"),
        ([0.5] * 12, r"\(blocks\): 0.5 is not a float of 8 bits"),
        ({"bytes": "08"}, r"\(blocks\): 1 bytes are given; the kernel takes 12"),
        ({"bytes": "0x08"}, r"arguments\[1\]: bytes: not pairs of hexadecimal digits"),
        ({"struct": [{"type": "int32", "value": 8}]}, "4 bytes are given; the kernel takes 12"),
        (
            {"struct": [{"type": "int8", "value": 300}]},
            r"arguments\[1\].struct\[0\]: 300 is not an int8",
        ),
        (
            {"struct": [{"type": "complex64", "value": 1}]},
            r"struct\[0\]: write a complex number as two",
        ),
        (
            {"struct": [{"same_as": "blocks"}]},
            r"struct\[0\]: blocks is not an argument with its own buffer",
        ),
        ({"struct": []}, r"arguments\[1\]"),
        ([], r"arguments\[1\]: .*a structure"),
        (F16, r"\(blocks\): the kernel takes 12 bytes by value here, not a buffer"),
    ],
)
def test_a_structure_that_is_none_is_named(argument: Any, says: str) -> None:
    with pytest.raises(UserError, match=says):
        segment([F16, argument, 0])


def test_a_pointer_is_no_structure() -> None:
    with pytest.raises(UserError, match=r"\(x\): the kernel takes a buffer here, not a structure"):
        segment([[1, 2], [8, 8, 2], 0])


def test_a_number_that_its_argument_cannot_hold_is_refused() -> None:
    with pytest.raises(UserError, match=r"\(scale\): 1e\+300 is not a float of 32 bits"):
        of(launch([F16, F16, 1, 1e300, 0]))


def test_hidden_arguments_are_not_given(tmp_path: Any) -> None:
    code = listing((*ARGUMENTS[:2], ARGUMENTS[6]))
    made, _ = of(launch([F16, F16]), code)
    assert len(made.arguments) == 2


def test_a_listing_is_known_by_its_content(tmp_path: Any) -> None:
    file = tmp_path / "k.txt"
    file.write_text(listing())
    found = read_kernels(file, GFX942)
    assert (found.kernels, found.select_kernel(""), found.select_kernel("k")) == (("k",), "k", "k")
    with pytest.raises(UserError, match=r"k.txt: no kernel q; known: k"):
        found.select_kernel("q")
    file.write_text(listing() + listing().replace(" k\n", " other\n"))
    with pytest.raises(UserError, match="the launch must name its function; known: k, other"):
        read_kernels(file, GFX942).select_kernel("")
    with pytest.raises(UserError, match=r"k.txt: built for gfx942, not for gfx950"):
        read_kernels(file, targets.find("gfx950"))
    for content, says in (
        (b"int main() {}", "not a listing of AMD's assembler with a kernel"),
        (b"\xff\xfe\x00", "neither a code object nor a listing"),
        ((listing() + "\x1b[2J").encode(), "not a listing of AMD's assembler"),
    ):
        file.write_bytes(content)
        with pytest.raises(UserError, match=says):
            read_kernels(file, GFX942)


def test_a_launch_is_plain_data() -> None:
    text = read_launch(launch([1], sizes={"M": 4}, function="f"))
    assert isinstance(text, LaunchSpec)
    assert (text.sizes, text.function, text.arguments) == ({"M": 4}, "f", (1,))
