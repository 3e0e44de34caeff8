"""Environments: on what a measurement was made, one row for equal surroundings."""

from __future__ import annotations

import hashlib
import json

from codegen_app.models import Build, Environment
from scheduler.runtime.device import DeviceInfo


def record(device: DeviceInfo, build: Build) -> Environment:
    """The row of a device with the compiler that made what runs on it."""
    facts = {
        "device": device.id,
        "device_name": device.name,
        "target": device.target,
        "driver": device.driver,
        "runtime": device.runtime,
        "compiler": f"{build.toolchain} {build.toolchain_version}"[:200],
        "compute_units": device.compute_units,
        "memory_bytes": device.memory_bytes,
        "emulated": device.emulated,
        "attributes": dict(device.attributes),
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    row, _ = Environment.objects.get_or_create(digest=digest, defaults=facts)
    return row
