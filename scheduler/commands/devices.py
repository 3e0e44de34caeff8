"""What can be run on here, and why each other kind of device is not there."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from scheduler.commands.output import print_json, print_table
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import probe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options of its own."""


def run(arguments: argparse.Namespace) -> int:
    """Print the devices that can be opened, and why others cannot; exit status 0."""
    found = probe()
    if arguments.json:
        present = [asdict(one) for one in found if isinstance(one, DeviceInfo)]
        absent = [asdict(one) for one in found if not isinstance(one, DeviceInfo)]
        print_json({"devices": present, "absent": absent})
        return 0
    rows = [
        (one.id, one.target, one.name, f"{one.runtime} {one.driver}".strip())
        if isinstance(one, DeviceInfo)
        else (one.kind, "-", f"not here: {one.reason}", "")
        for one in found
    ]
    print_table(("device", "target", "name", "runtime"), rows)
    return 0
