"""The code object of a build: instructions alone decide whether two are the same."""

from __future__ import annotations

from scheduler.targets import find
from scheduler.track.code_object import code_object
from scheduler.track.sides import CodeObject

LISTING = """\
	.type	NAME,@function
NAME:
	s_load_dwordx2 s[0:1], s[4:5], 0x0
.LBB0_1:
	global_load_dword v1, v0, s[0:1]
	v_add_f32_e32 v2, v1, v2
	v_add_f32_e32 v2, v1, v2
	s_cbranch_scc1 .LBB0_1
	s_endpgm
.Lfunc_end0:
	.size	NAME, .Lfunc_end0-NAME
"""


def code(listing: str) -> CodeObject:
    return code_object(find("gfx942"), "digest", {"kernel": {"vgpr": 3}}, listing)


def named(name: str) -> str:
    return LISTING.replace("NAME", name)


def test_a_kernels_name_makes_no_other_code() -> None:
    one, other = code(named("kernel_1234abcd")), code(named("kernel_98765432"))
    assert one.instructions_digest == other.instructions_digest != ""


def test_another_instruction_or_register_does() -> None:
    one = code(named("kernel"))
    for edit in (("v_add_f32_e32", "v_sub_f32_e32"), ("v2, v1, v2", "v3, v1, v3")):
        assert code(named("kernel").replace(*edit)).instructions_digest != one.instructions_digest


def test_the_mix_is_of_the_inner_loop() -> None:
    assert code(named("kernel")).inner_loop == {"vector": 2, "global": 1, "branch": 1}


def test_without_a_listing_only_the_file_is_known() -> None:
    assert code("") == CodeObject("digest", "", {"kernel": {"vgpr": 3}}, {})
