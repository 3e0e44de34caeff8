"""The program that runs a bundle's whole graph once; ``graph_run.py`` calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from scheduler.benchmark.graph_run import BUNDLE, INPUTS
from scheduler.benchmark.verification import rebuild_schedule, run_once
from scheduler.bundle.reader import open_bundle
from scheduler.runtime.device import DeviceError
from scheduler.runtime.devices import open_device
from scheduler.sandbox.rpc import Answer, Handler


def make_handler() -> Handler:
    """Return the handler of the child process."""
    return run_graph


def run_graph(request: dict[str, Any]) -> Answer:
    """Answer with what is missing, the sizes, and each output's bytes, or with a device error."""
    folder = Path(request["folder"])
    bundle = open_bundle(folder / BUNDLE)
    inputs = {
        name: np.load(folder / INPUTS / f"{number}.npy", mmap_mode="r", allow_pickle=False)
        for number, name in enumerate(request["inputs"])
    }
    try:
        device = open_device(request["device"])
        outputs = run_once(bundle, rebuild_schedule(bundle), device, request["bindings"], inputs)
    except DeviceError as error:
        return Answer({"status": error.status, "message": error.message}, ())
    answer = {"missing": dict(outputs.missing), "bindings": dict(outputs.bindings)}
    payload = [np.ascontiguousarray(value).data for value in outputs.values.values()]
    return Answer(answer, payload)
