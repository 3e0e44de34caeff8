"""The command ``kiln``: all of Kiln on this machine, its commands, a worker, the engine.

Only what a command needs is imported: a machine that measures for a remote server has neither
database nor pages.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from scheduler.version import kiln_version

_SETTINGS = "codegen_app.platform.config.settings"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    command: str = parser().parse_args(arguments[:1]).command
    run, _ = COMMANDS[command]
    return run(arguments[1:])


def parser() -> argparse.ArgumentParser:
    """Return the parser of the first word; each command parses its own arguments."""
    top = argparse.ArgumentParser(
        prog="kiln",
        description="GPU kernel code generator with a web dashboard",
        epilog="kiln COMMAND --help describes a command.",
    )
    top.add_argument("--version", action="version", version=f"kiln {kiln_version()}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (_, summary) in COMMANDS.items():
        commands.add_parser(name, help=summary, add_help=False)
    return top


def manage(arguments: Sequence[str], program: str = "kiln manage") -> int:
    """Run one of Django's management commands; ``program`` is its name in its help."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", _SETTINGS)
    from django.conf import settings  # noqa: PLC0415 - a worker elsewhere needs no Django
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    from codegen_app.platform.config.env import exit_with_one_line  # noqa: PLC0415

    with exit_with_one_line():
        var = settings.VAR_DIR
    # The demo decides by itself.
    if arguments[:1] != ["demo"]:
        from codegen_app.platform import system_user  # noqa: PLC0415

        system_user.become_owner(var)
    execute_from_command_line([program, *arguments])
    return 0


def demo(arguments: Sequence[str]) -> int:
    """Run the demo."""
    return manage(["demo", *arguments], "kiln")


def worker(arguments: Sequence[str]) -> int:
    """Run a worker of a remote server."""
    status: int = import_module("scheduler.commands.kiln").main(["worker", *arguments])
    return status


def engine(arguments: Sequence[str]) -> int:
    """Run one of the engine's commands."""
    status: int = import_module("scheduler.commands.main").main(arguments, "kiln engine")
    return status


COMMANDS: dict[str, tuple[Callable[[Sequence[str]], int], str]] = {
    "demo": (demo, "run all of Kiln on this machine, with two real models"),
    "manage": (manage, "manage an installation: migrate, import_graph, retune, backup …"),
    "worker": (worker, "measure on this machine for a Kiln server"),
    "engine": (engine, "lower, compile, verify and tune a model without database and web server"),
}
