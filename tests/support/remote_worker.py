"""A remote worker by hand: what it sends to the API, said in a test's words."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from codegen_app.tuning.models import TuningTask
from scheduler.agent.protocol import SESSION_HEADER
from scheduler.agent.version import PROTOCOL, generator_digest

DEVICE = {
    "id": "cpu",
    "target": "cpu",
    "name": "CPU",
    "driver": "",
    "runtime": "kiln",
    "compute_units": 2,
    "memory_bytes": 2**34,
    "emulated": True,
    "attributes": {},
}
CHECK = {"passed": True, "max_error": 1e-6, "bound": 1e-3, "ratio": 1e-3, "guard_intact": True}


def samples(*ns: float, **other: Any) -> dict[str, Any]:
    return {"samples_ns": list(ns or (100.0, 101.0, 102.0)), "batch": 3, "check": CHECK} | other


class Remote:
    """A worker by hand."""

    def __init__(self, client: Client, token: str) -> None:
        self.client, self.token, self.session = client, token, ""

    def post(self, path: str, body: Any) -> Any:
        data = body if isinstance(body, str) else json.dumps(body)
        headers = {"Authorization": f"Bearer {self.token}", SESSION_HEADER: self.session}
        address = f"/api/v1/worker/{path}"
        return self.client.post(address, data, content_type="application/json", headers=headers)

    def get(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", SESSION_HEADER: self.session}
        return self.client.get(f"/api/v1/worker/{path}", headers=headers)

    def hello(self, **changed: Any) -> Any:
        facts = {"protocol": PROTOCOL, "generator": generator_digest(), "host": "h", "pid": 7}
        answer = self.post("hello", facts | {"devices": [DEVICE]} | changed)
        if answer.status_code == 200:
            self.session = answer.json()["session"]
        return answer

    def lease(self) -> dict[str, Any]:
        answer = self.post("lease", {})
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found

    def progress(self, lease: str, *results: Any, device: str = "cpu") -> Any:
        return self.post("progress", {"lease": lease, "device": device, "results": list(results)})

    def finish(self, lease: str, *lines: Any, device: str = "cpu") -> Any:
        return self.post("finish", {"lease": lease, "device": device, "lines": list(lines)})


def kernels(task: TuningTask) -> list[str]:
    return list(task.candidates.order_by("position").values_list("kernel__name", flat=True))


def result(kernel: str, *ns: float) -> dict[str, Any]:
    return {"kernel": kernel, "measured": samples(*ns), "loss": None}


def line(kernel: str, state: str, **other: Any) -> dict[str, Any]:
    fields = {"tied": False, "reason": "", "measured": None, "loss": None}
    return {"kernel": kernel, "state": state} | fields | other


def refused(answer: Any, status: int, words: str) -> bool:
    text = answer.json()["error"]
    assert answer.status_code == status, text
    assert words in text, text
    assert "\n" not in text
    return True
