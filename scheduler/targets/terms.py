"""Each maker's terms for the parts that all GPUs have: every sentence takes them from here.

AMD: HIP and the CDNA/RDNA instruction set documents. NVIDIA: CUDA C++ Programming Guide.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Terms:
    """A maker's terms, in the singular; see ``plural``.

    ``wave``: threads that run in lockstep. ``lane``: one of them. ``unit``: runs whole blocks,
    ``unit_in_full`` is its long name. ``shared``: the memory that the threads of a block share.
    ``register``: of one lane. ``scratch``: memory of one lane, for spilled registers. ``scalar``:
    instructions that run once for a wave, on registers that its lanes share. ``image``: the machine
    code in a file. ``instructions``: the name of its listing.
    """

    wave: str
    lane: str
    unit: str
    unit_in_full: str
    shared: str
    register: str
    scratch: str
    scalar: str
    image: str
    instructions: str


def plural(word: str) -> str:
    """Return the plural of a countable term: wave, lane, CU, VGPR …"""
    return f"{word}s"


GENERAL = Terms(
    wave="wave",
    lane="lane",
    unit="compute unit",
    unit_in_full="compute unit",
    shared="shared memory",
    register="register",
    scratch="scratch memory",
    scalar="scalar",
    image="code object",
    instructions="instructions",
)
AMD = Terms(
    wave="wave",
    lane="lane",
    unit="CU",
    unit_in_full="compute unit",
    shared="LDS",
    register="VGPR",
    scratch="scratch",
    scalar="scalar",
    image="code object",
    instructions="ISA",
)
NVIDIA = Terms(
    wave="warp",
    lane="thread",
    unit="SM",
    unit_in_full="streaming multiprocessor",
    shared="shared memory",
    register="register",
    scratch="local memory",
    scalar="uniform",
    image="cubin",
    instructions="SASS",
)
