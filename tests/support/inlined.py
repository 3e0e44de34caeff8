"""A build whose listing has an instruction from a header of ours, as larger kernels' have."""

from __future__ import annotations

import hashlib

from codegen_app.kernels.models import Build
from codegen_app.platform import artifacts
from scheduler.build.sandbox_paths import HEADER_ROOT

HEADER, LINE, CALL = "common/kiln/mma.h", 32, 10


def inlined(build: Build) -> Build:
    """The build (of AMD's) with one more instruction: from ``LINE`` of ``HEADER``, called in line
    ``CALL`` of the source."""
    assert build.listing is not None
    folder, _, name = HEADER.rpartition("/")
    md5 = hashlib.md5((HEADER_ROOT / HEADER).read_bytes(), usedforsecurity=False).hexdigest()
    added = (
        f'\t.file\t9 "include/{folder}" "{name}" md5 0x{md5}\n'
        f"\t.loc\t9 {LINE} 10 ; include/{HEADER}:{LINE}:10 @[ source.hip:{CALL}:20 ]\n"
        f"\tv_mov_b32_e32 v0, v0\n\t.loc\t0 {CALL} 1\n"
    )
    text = artifacts.read(build.listing).decode().replace("\ts_endpgm", f"{added}\ts_endpgm", 1)
    build.listing = artifacts.store(text.encode(), ".s")
    build.save()
    return build
