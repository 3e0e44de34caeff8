"""The row of the registry, and what is compiled for."""

from __future__ import annotations

from scheduler.targets.model import Hardware, Target
from scheduler.targets.registry import Backend

TARGETS = (Target("tiny", "tiny", "tiny", Hardware(wavefront=1)),)

BACKEND = Backend(
    name="tiny",
    targets="kiln_tiny.backend:TARGETS",
    scheduling="kiln_tiny.scheduling:TinyScheduling",
    recipe="kiln_tiny.recipe:RECIPE",
    compilers="scheduler.build.toolchains:clang_compilers",
    listings="kiln_tiny.listing:READER",
    devices="kiln_tiny.device:DEVICES",
    device_ids=r"tiny:\d",
    default_device="tiny:0",
)
