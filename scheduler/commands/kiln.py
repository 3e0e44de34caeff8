"""Run a worker that measures on this machine for a Kiln server.

    kiln worker join https://kiln.example --token-file token

The worker needs no database and opens no port: it gets work from the server over HTTPS and sends
the results back. Exit status: 0 drained, stopped, or done (--once); 1 internal error; 2 user error;
3 request rejected by the server; 4 invalid token; 5 another process joined under the same name;
6 stopped while the server was unreachable.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from scheduler.errors import UserError
from scheduler.targets.generations import AMD_EXAMPLE
from scheduler.text import one_line

DONE, INTERNAL_ERROR, USER_ERROR, REJECTED, INVALID_TOKEN, REPLACED, UNREACHABLE = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
)
_CACHE_MIB = 4096


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    arguments = make_parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        if arguments.require_fence:
            import_module("scheduler.sandbox").require()
        token = read_token(arguments.token_file)
    except UserError as error:
        return _print_error(str(error), USER_ERROR)
    return run_worker(arguments, token)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="kiln", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    worker = commands.add_parser("worker", help="run a worker for a server")
    worker_commands = worker.add_subparsers(required=True, metavar="COMMAND")
    join = worker_commands.add_parser("join", help="connect, and measure until stopped or drained")
    join.add_argument(
        "url", metavar="URL", help="address of the server, such as https://kiln.example"
    )
    join.add_argument(
        "--token-file", type=Path, help="file with the token (default: the variable KILN_TOKEN)"
    )
    join.add_argument(
        "--queue", default="", help=f"take work from this queue only, such as measure.{AMD_EXAMPLE}"
    )
    join.add_argument("--name", default="", help="fail if the token is for another name")
    join.add_argument(
        "--slot",
        type=int,
        default=1,
        help="number of this worker, if several share a token (default: %(default)s)",
    )
    join.add_argument(
        "--folder", type=Path, help="this worker's files (default: ~/.local/share/kiln-worker)"
    )
    join.add_argument(
        "--device-locks",
        type=Path,
        default=Path.home() / ".local/share/kiln-device-locks",
        help="folder of the device locks, the same for all workers on this machine"
        " (default: ~/.local/share/kiln-device-locks)",
    )
    join.add_argument(
        "--cache-mib",
        type=int,
        default=_CACHE_MIB,
        help="size of the cache of downloaded files, in MiB (default: %(default)s)",
    )
    join.add_argument("--once", action="store_true", help="exit after one task")
    join.add_argument(
        "--require-fence",
        action="store_true",
        help="exit with an error if the sandbox is incomplete on this machine",
    )
    return parser


def run_worker(arguments: argparse.Namespace, token: str) -> int:
    """Run a worker; return the exit status."""
    # Slow imports: a mistake in the command line is reported before them.
    folder = import_module("scheduler.agent.folder")
    servers = import_module("scheduler.agent.client")
    workers = import_module("scheduler.agent.worker")
    stop = threading.Event()
    slot = arguments.slot
    default_folder = Path.home() / ".local/share/kiln-worker" / (str(slot) if slot > 1 else "")
    try:
        server = servers.ServerClient(arguments.url, token, stop)
        files = folder.Folder(arguments.folder or default_folder, arguments.cache_mib << 20)
        options = workers.WorkerOptions(
            arguments.queue, arguments.name, slot, arguments.once, arguments.device_locks
        )
        worker = workers.RemoteWorker(server, files, options, stop)
        for number in (signal.SIGTERM, signal.SIGINT):
            # In a thread: the interrupted code may hold a lock that ``end`` needs.
            signal.signal(number, lambda *_: threading.Thread(target=worker.end).start())
        worker.run()
    except servers.TokenError as error:
        return _print_error(str(error), INVALID_TOKEN)
    except servers.LeaseOverError as error:
        return _print_error(str(error), REPLACED)
    except servers.StoppedError as error:
        return _print_error(f"stopped while the server was unreachable: {error}", UNREACHABLE)
    except UserError as error:
        return _print_error(str(error), REJECTED if server_answered(error) else USER_ERROR)
    return DONE


def server_answered(error: UserError) -> bool:
    """Whether the message is the server's."""
    return str(error).startswith("the server answered")


def read_token(file: Path | None) -> str:
    """Return the token, from its file or the environment: others can see a command line."""
    try:
        text = os.environ.pop("KILN_TOKEN", "") if file is None else file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--token-file: {file} cannot be read: {one_line(str(error))}") from None
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise UserError(
            "no valid token: create one on the page “API tokens”, then give --token-file or set"
            " KILN_TOKEN"
        )
    return token


def _print_error(line: str, status: int) -> int:
    sys.stderr.write(f"kiln: {one_line(line)}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
