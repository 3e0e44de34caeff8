"""``manage.py generate_history``: series that were not measured, with every kind of change."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from codegen_app.tracking.services import generated_history
from scheduler.track.generated import REVISIONS
from scheduler.track.generated_label import LABEL

_MAX_SERIES = 1_000


class Command(BaseCommand):
    """Stores the history; the same command again adds nothing."""

    help = (
        "Store series with changes of every kind whose causes are known. None was measured: all of"
        f" it is called “{LABEL}”."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--series", type=int, default=generated_history.SERIES)
        parser.add_argument("--seed", type=int, default=0, help="seed of the random history")

    def handle(self, *, series: int, seed: int, **_: Any) -> None:
        if not 1 <= series <= _MAX_SERIES:
            raise CommandError(f"--series {series}: 1 to {_MAX_SERIES}")
        if not 0 <= seed < 2**32:
            raise CommandError(f"--seed {seed}: 0 to {2**32 - 1}")
        history = generated_history.store(series, seed)
        if not history.points:
            self.stdout.write(f"the {LABEL} history is here already: nothing was added")
            return
        self.stdout.write(
            f"{history.points} {LABEL} points in {history.series} series of {REVISIONS} revisions;"
            " none was measured"
        )
