"""List the devices, why others are not available, and the state of the sandbox."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from scheduler import sandbox
from scheduler.commands.output import print_json, print_table
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import modelled_devices, probe_devices


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no options."""


def run(arguments: argparse.Namespace) -> int:
    """Print the available devices, why others are not available, the modelled devices, and the
    protections of the sandbox. Exit status 0."""
    devices, parts = probe_devices(), sandbox.sandbox_status().parts
    if arguments.json:
        present = [asdict(device) for device in devices if isinstance(device, DeviceInfo)]
        absent = [asdict(device) for device in devices if not isinstance(device, DeviceInfo)]
        modelled = [asdict(device) for device in modelled_devices()]
        fence = [asdict(part) for part in parts]
        print_json({"devices": present, "absent": absent, "modelled": modelled, "fence": fence})
        return 0
    rows = []
    for device in (*devices, *modelled_devices()):
        if isinstance(device, DeviceInfo):
            name, versions = (
                "; ".join((device.name, *device.notes)),
                f"{device.runtime} {device.driver}",
            )
            rows.append((device.id, device.target, name, versions.strip()))
        else:
            rows.append((device.kind, "-", f"not available: {device.reason}", ""))
    print_table(("device", "target", "name", "runtime"), rows)
    states = {True: "MISSING", False: "no"}
    print_table(
        ("sandbox", "in force", "details"),
        [(part.name, "yes" if part.in_force else states[part.needed], part.note) for part in parts],
    )
    return 0
