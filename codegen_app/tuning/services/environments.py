"""Environments of measurements: one row for equal devices, drivers and compilers."""

from __future__ import annotations

import hashlib
import json

from codegen_app.kernels.models import Build
from codegen_app.tuning.models import Environment
from scheduler.runtime.device import DeviceInfo


def record(device: DeviceInfo, build: Build) -> Environment:
    """Return the row of a device with the compiler of the code that runs on it."""
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
