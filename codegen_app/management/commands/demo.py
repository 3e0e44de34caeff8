"""``manage.py demo``: the whole of Kiln on this machine, with two real models."""

from __future__ import annotations

import fcntl
import os
import signal
import time
import urllib.error
import urllib.request
from argparse import ArgumentParser
from contextlib import suppress
from itertools import chain
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError, OperationalError, connections

from codegen_app.platform import postgres, system_user
from codegen_app.platform.config.layout import LAYOUT
from codegen_app.site.demo import models, preparation
from codegen_app.site.demo.database import DatabaseServer
from codegen_app.site.demo.maintenance import Maintenance
from codegen_app.site.demo.processes import Supervisor
from codegen_app.site.demo.programs import programs
from codegen_app.workers import work
from scheduler import samples
from scheduler.errors import MachineError, UserError

_SERVE_LIMIT_S = 60.0
_LOOK_EVERY_S = 0.5
_IMPORT_AGAIN_S = 10.0


class _StopError(Exception):
    """Somebody asked the demo to end."""


class _Stop:
    """Remembers that a signal came. A handler that raised could be inside any clean-up, whose
    errors Python drops: the demo would then run on."""

    def __init__(self) -> None:
        self._stop_requested = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._request_stop)

    def check(self) -> None:
        """Raise ``_StopError`` once somebody asked."""
        if self._stop_requested:
            raise _StopError

    def _request_stop(self, _: int, __: FrameType | None) -> None:
        self._stop_requested = True


class Command(BaseCommand):
    """Starts everything, imports the models, and stops everything at Ctrl-C or SIGTERM."""

    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument(
            "--no-models", action="store_true", help="do not import the sample models"
        )

    def handle(self, *_: Any, host: str, port: int, no_models: bool = False, **__: Any) -> None:
        self._imports = not no_models
        self._recorded = models.RecordedResults(samples.results())
        self._stop = _Stop()
        try:
            self._run(host, port)
        except _StopError:
            return
        except (UserError, postgres.PostgresError) as error:
            raise CommandError(str(error)) from None
        except DatabaseError as error:
            raise CommandError(f"the database: {str(error).splitlines()[0]}") from None
        except OSError as error:
            what = f"{error.filename}: " if error.filename else ""
            raise CommandError(f"{what}{error.strerror or error}") from None

    def _run(self, host: str, port: int) -> None:
        var = settings.VAR_DIR
        preparation.check_disk(var)
        with (var / "demo.lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                process = lock.read().strip()
                raise UserError(f"the demo runs already, as process {process}") from None
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            preparation.check_port(host, port)
            settings.ROOT_BECAUSE = preparation.leave_root(var, self._print)
            cluster = postgres.cluster_for(var) if preparation.database_is_ours() else None
            self._database = DatabaseServer(cluster, self._print)
            try:
                self._database.start()
                self._stop.check()
                # After the database server, which is no child to be killed with the others.
                supervisor = Supervisor(LAYOUT.work, var / "log", self._environment(host, port))
                try:
                    self._serve(supervisor, host, port)
                finally:
                    supervisor.stop()
                    connections.close_all()  # the last use may have failed
                    with suppress(DatabaseError):  # then leases do it, later
                        work.release_all()
            finally:
                self._database.stop()

    def _serve(self, supervisor: Supervisor, host: str, port: int) -> None:
        preparation.remove_outdated(settings.VAR_DIR)
        password = self._database.retry(preparation.prepare_application)
        self._stop.check()
        # Of a demo that was killed; nobody else works here.
        self._database.retry(work.requeue_orphans)
        web, *workers = programs(settings.VAR_DIR, host, port, models.DEVICE)
        supervisor.start(web)
        url = f"http://{host}:{port}/"
        deadline = time.monotonic() + _SERVE_LIMIT_S
        while True:
            self._stop.check()
            if supervisor.ended("web") or time.monotonic() >= deadline:
                raise UserError(f"the web server does not answer: see {supervisor.log_of('web')}")
            try:
                with urllib.request.urlopen(f"{url}login/", timeout=_SERVE_LIMIT_S):  # noqa: S310
                    break
            except urllib.error.HTTPError:
                break  # it answers; what it says is in its log
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        self._print(f"Kiln serves at {url}")
        if os.geteuid() == 0:
            self._print(system_user.describe_user())
        if password is not None:
            self._print(f"sign in as {preparation.ADMIN} with the password {password} (shown once)")
        for program in workers:
            supervisor.start(program)
        upkeep = Maintenance(
            supervisor, settings.VAR_DIR / "tmp", postgres.cluster_for(settings.VAR_DIR)
        )
        next_import_s = 0.0 if self._imports else None
        while True:
            self._stop.check()
            self._database.watch()
            if next_import_s is not None and time.monotonic() >= next_import_s:
                is_complete = self._import_models()
                next_import_s = None if is_complete else time.monotonic() + _IMPORT_AGAIN_S
            supervisor.watch(self._print)
            upkeep.run_due(self._print)
            time.sleep(_LOOK_EVERY_S)

    def _import_models(self) -> bool:
        """Whether they are all there; what failed by the machine's fault is tried again."""
        try:
            ready = (models.import_models(), models.generate_history(preparation.ADMIN))
            for line in chain(*ready, self._recorded.import_next()):
                self._print(line)
                self._stop.check()
        except (OSError, InterfaceError, OperationalError, MachineError) as error:
            self._print(f"the models are imported later: {str(error).splitlines()[0]}")
            connections.close_all()
            return False
        return not self._recorded.waiting

    def _environment(self, host: str, port: int) -> dict[str, str]:
        # What compilers were at when they were killed: nobody else works in this folder.
        preparation.fresh_folder(settings.VAR_DIR / "code-cache" / "tmp")
        return {
            **os.environ,
            "TMPDIR": str(preparation.fresh_folder(settings.VAR_DIR / "tmp")),
            "KILN_READ_NEEDS_LOGIN": "0",
            "KILN_HISTORY_DAYS": "0",  # its histories were recorded long ago
            "KILN_SITE_URL": settings.SITE_URL or f"http://{host}:{port}",
            "KILN_ROOT_BECAUSE": settings.ROOT_BECAUSE,
            "KILN_SECRET_KEY": preparation.secret_key(settings.VAR_DIR),
        }

    def _print(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
