"""The program that reads one code object; ``reader.py`` calls it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from scheduler.errors import UserError
from scheduler.isa.rocm.objects import disassembler, elf, listing_writer, offload_bundle
from scheduler.isa.rocm.objects.model import ReadLimits
from scheduler.sandbox.rpc import Handler


def make_handler() -> Handler:
    """Return the handler of requests. Raises ``UserError`` if LLVM's library cannot be loaded."""
    library = disassembler.load()

    def read(request: dict[str, Any]) -> dict[str, Any]:
        file, limits = Path(request["file"]), ReadLimits(**request["limits"])
        try:
            content = offload_bundle.unbundle(file.read_bytes(), request["processor"])
            image = elf.read(content, limits)
            return asdict(listing_writer.write_listing(image, library, limits, request["kernels"]))
        except UserError as error:
            raise UserError(f"{file.name}: {error}") from None

    return read
