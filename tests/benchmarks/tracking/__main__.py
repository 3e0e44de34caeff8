"""Ten million points in fifty thousand series: pages and ingest, as they are served.

    python -m tests.benchmarks.tracking FOLDER [--keep] [--plans] [--only pages|ingest]
                                        [--requests 200] [--sent 60000] [--scale 1.0]

Builds a PostgreSQL of its own in FOLDER with COPY (5 GB, some minutes), starts the web server and
the workers as ``make demo`` does, with no page kept, and asks for pages as somebody who has signed
in, one request after the other. ``--keep`` leaves the database for the next run; else it is deleted
afterwards. ``--plans`` prints the plan of each query of each page instead. Exits with 1 where a
goal is missed.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import django

from tests.benchmarks.printing import say
from tests.benchmarks.tracking.content import Content, content
from tests.benchmarks.tracking.goals import Figure
from tests.benchmarks.tracking.server import Place

_ROOM = 20 << 30  # bytes, that building and measuring fill at most


def main() -> int:
    """Build what is not there, measure, and print a line for each figure."""
    options = _options()
    place = Place(options.folder.resolve())
    place.var.mkdir(parents=True, exist_ok=True)
    if not place.built.exists() and shutil.disk_usage(place.folder).free < _ROOM * options.scale:
        say(f"{place.folder}: less than {_ROOM >> 30} GiB are free")
        return 1
    os.environ.update(place.environment())
    django.setup()
    from tests.benchmarks.tracking.building import build  # rows need Django to be set up

    made = content(options.scale)
    cores = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {platform.machine()}"
    say(f"{made.points:,} points; {cores}; no page is kept")
    if not place.built.exists():
        build(place, made)
    place.start()
    try:
        place.manage("migrate", "--verbosity=0")  # of a database that was kept
        if options.plans:
            _plans(made)
            return 0
        figures = list(_measured(place, made, options))
        return 0 if all(figure.is_met for figure in figures) else 1
    finally:
        if options.keep:
            place.stop()
        else:
            place.remove()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--plans", action="store_true")
    parser.add_argument("--only", choices=("pages", "ingest"))
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--sent", type=int, default=60_000)
    parser.add_argument("--scale", type=float, default=1.0)
    return parser.parse_args()


def _measured(place: Place, made: Content, options: argparse.Namespace) -> Iterator[Figure]:
    from tests.benchmarks.tracking import ingesting, pages, room
    from tests.benchmarks.tracking.serving import serving

    yield _printed(room.measured(place))
    if options.only != "ingest":
        with serving(place, workers=False) as url:
            cookie = pages.session()
            for page in pages.pages(made, options.requests):
                figure = pages.measured(url, cookie, page, options.requests)
                if figure is not None:
                    yield _printed(figure)
    if options.only != "pages":
        with serving(place, workers=True) as url:
            for figure in ingesting.batches(url, made):
                yield _printed(figure)
            for figure in ingesting.sustained(url, made, options.sent):
                yield _printed(figure)


def _printed(figure: Figure) -> Figure:
    figure.print()
    return figure


def _plans(made: Content) -> None:
    from tests.benchmarks.tracking import pages

    for page in pages.pages(made, 1):
        pages.plans(page)


if __name__ == "__main__":
    sys.exit(main())
