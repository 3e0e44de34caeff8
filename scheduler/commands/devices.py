"""List the devices, why others are not available, and the state of the sandbox."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from scheduler import sandbox
from scheduler.commands.output import print_json, print_table
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import probe
from scheduler.runtime.modelled import modelled_devices


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options of its own."""


def run(arguments: argparse.Namespace) -> int:
    """Print the devices that can be opened, why others cannot, and those whose times are modelled;
    what keeps kernels, compilers and readers of files to their own folders here. Exit status 0."""
    found, parts = probe(), sandbox.in_force().parts
    if arguments.json:
        present = [asdict(one) for one in found if isinstance(one, DeviceInfo)]
        absent = [asdict(one) for one in found if not isinstance(one, DeviceInfo)]
        modelled = [asdict(one) for one in modelled_devices()]
        fenced = [asdict(one) for one in parts]
        print_json({"devices": present, "absent": absent, "modelled": modelled, "fence": fenced})
        return 0
    rows = [
        (one.id, one.target, "; ".join((one.name, *one.notes)), _versions(one))
        if isinstance(one, DeviceInfo)
        else (one.kind, "-", f"not available: {one.reason}", "")
        for one in (*found, *modelled_devices())
    ]
    print_table(("device", "target", "name", "runtime"), rows)
    held = [(one.name, _in_force(one), one.note) for one in parts]
    print_table(("sandbox", "in force", "details"), held)
    return 0


def _versions(one: DeviceInfo) -> str:
    return f"{one.runtime} {one.driver}".strip()


def _in_force(part: sandbox.Protection) -> str:
    if part.in_force:
        return "yes"
    return "MISSING" if part.needed else "no"
