"""The command line: parses it, runs the command, and reports errors in one line."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from scheduler.errors import UserError
from scheduler.runtime.device import DeviceError
from scheduler.text import one_line

# Modules of this folder; only that of the requested command is imported, to start fast.
COMMANDS = {
    name.rstrip("_").replace("_", "-"): f"scheduler.commands.{name}"
    for name in (
        "targets",
        "devices",
        "lower",
        "compile_",
        "run",
        "verify",
        "tune",
        "model",
        "compare_results",
    )
}
OK, FAILED, USER_ERROR, INTERRUPTED = 0, 1, 2, 130


def make_parser(
    requested: str | None = None, program: str = "python -m scheduler"
) -> argparse.ArgumentParser:
    """Return the parser of the command line, with all commands or only the ``requested`` one."""
    parser = argparse.ArgumentParser(
        prog=program, description="Generate and tune GPU kernels from a model's graph"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in [requested] if requested in COMMANDS else COMMANDS:
        module = import_module(COMMANDS[name])
        summary = (module.__doc__ or "").splitlines()[0]
        command = commands.add_parser(name, help=summary, description=module.__doc__)
        command.add_argument("--json", action="store_true", help="print JSON instead of tables")
        command.add_argument(
            "--require-fence",
            action="store_true",
            help="exit with an error if the sandbox is incomplete on this machine",
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None, program: str = "python -m scheduler") -> int:
    """Run one command; return the exit status: 0, 1 (a failure) or 2 (a user's mistake)."""
    words = sys.argv[1:] if argv is None else list(argv)
    arguments = make_parser(words[0] if words else None, program).parse_args(words)
    try:
        if arguments.require_fence:
            import_module("scheduler.sandbox").require()
        return int(arguments.run(arguments))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return USER_ERROR
    except DeviceError as error:
        sys.stderr.write(f"device error: {one_line(str(error))}\n")
        return FAILED
    except MemoryError as error:
        sys.stderr.write(f"out of memory: {error}\n")
        return FAILED
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        return OK  # the reader of the output closed it, as head does
    except Exception:  # noqa: BLE001 -- a bug: the traceback is printed
        traceback.print_exc()
        return FAILED
