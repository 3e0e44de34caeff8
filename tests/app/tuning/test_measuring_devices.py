"""Which device a run gets on a machine with several GPUs, or why none."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from django.conf import settings as site

from codegen_app.tuning.models import TuningRun
from codegen_app.tuning.services import devices
from scheduler.errors import Rejected, Stage
from scheduler.runtime.device import AbsentDevice, DeviceInfo
from scheduler.runtime.lock import lock_device

OVER = threading.Event()
OVER.set()


def gpu(device_id: str, target: str, name: str) -> DeviceInfo:
    facts = (device_id, target, name, "driver", "runtime", 132, 80 << 30, False, {})
    return DeviceInfo(*facts)


@pytest.mark.parametrize(("kind", "target"), [("cuda", "sm_90"), ("rocm", "gfx942")])
def test_a_run_takes_a_free_gpu_of_the_same_model_and_waits_for_no_other(
    kind: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = (
        gpu(f"{kind}:0", target, "large"),
        gpu(f"{kind}:1", target, "small"),
        gpu(f"{kind}:2", target, "large"),
    )
    monkeypatch.setattr(devices, "probe_devices", lambda: found)
    run = TuningRun(device=f"{kind}:0")
    with devices.hold_device(run, OVER) as first, devices.hold_device(run, OVER) as second:
        assert (first, second) == (found[0], found[2])
        with devices.hold_device(run, OVER) as third:
            assert third is None, "the other model is free, and not what was asked for"
    with (
        lock_device(f"{kind}:0", Path(site.DEVICE_LOCKS_DIR)),
        devices.hold_device(run, OVER) as other,
    ):
        assert other == found[2]


def test_a_run_for_a_gpu_that_is_not_here_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = (
        AbsentDevice("rocm", "no AMD GPU"),
        AbsentDevice("cuda", "no CUDA-capable device is detected"),
    )
    monkeypatch.setattr(devices, "probe_devices", lambda: absent)
    with devices.hold_device(TuningRun(device="cuda:0"), OVER) as found:
        reason = "device cuda:0: no CUDA-capable device is detected"
        assert found == Rejected(Stage.LOAD, reason)
