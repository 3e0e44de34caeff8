"""The database of the benchmark, built with COPY."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any

import numpy as np
import psycopg

from codegen_app.tracking.detector.replay import DEFAULT_SETTINGS
from scheduler.results.points.model import digest_of
from tests.benchmarks.printing import say
from tests.benchmarks.tracking import points
from tests.benchmarks.tracking.content import Content, Suite
from tests.benchmarks.tracking.naming import facts, revision_key, series_key
from tests.benchmarks.tracking.server import BUILDING, Place

_APP = "codegen_app_"
_CAUSES = ("code", "code", "code", "tuning choice", "compiler", "environment", "cannot be said")
_CLOSED = ("fixed", "expected", "invalid")
_OPEN = ("new", "new", "acknowledged", "investigating")
_STILL_OPEN_DAYS = 120
_TOLD_DAYS = 200
_MISSING = 100

Rows = Iterable[Sequence[object]]


def build(place: Place, content: Content) -> None:
    """Make it anew, and note that it is complete."""
    begun = perf_counter()
    place.start(BUILDING)
    place.create()
    with psycopg.connect(place.url) as connection:
        # What refers to what is right by its making, and no page is kept yet.
        connection.execute("SET session_replication_role = replica")
        indexes = _drop_indexes(connection)
        _users(connection)
        starts = _tables(connection, content)
        say(f"  tables but points: {perf_counter() - begun:.0f} s")
        _points(connection, content, starts)
        say(f"  {content.points:,} points: {perf_counter() - begun:.0f} s")
        for statement in indexes:
            connection.execute(statement)
        _mark_branches(connection)
        _sequences(connection)
    say(f"  indexes: {perf_counter() - begun:.0f} s")
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE, FREEZE)")
        connection.execute("CHECKPOINT")
    place.stop()
    place.built.write_text(f"{content.points}\n")
    say(f"  built: {perf_counter() - begun:.0f} s")


def _drop_indexes(connection: psycopg.Connection[Any]) -> list[str]:
    """Of the points but their key: made afterwards, they are sorted once. How to make them."""
    found = connection.execute(
        "SELECT indexname, indexdef FROM pg_indexes"
        " WHERE tablename = 'codegen_app_datum' AND indexname <> 'codegen_app_datum_pkey'"
    ).fetchall()
    for name, _ in found:
        connection.execute(f'DROP INDEX "{name}"')
    return [statement for _, statement in found]


def _mark_branches(connection: psycopg.Connection[Any]) -> None:
    """The last revision of each suite is a branch's (``naming.revision_key``)."""
    for statement in (
        "INSERT INTO codegen_app_repository"
        " (name, default_branch, commit_url, compare_url, created_at)"
        " SELECT DISTINCT repository, 'main', '', '', now() FROM codegen_app_revision",
        "UPDATE codegen_app_revision SET is_trunk = FALSE WHERE branch <> 'main'",
        "UPDATE codegen_app_datum AS datum SET is_trunk = FALSE FROM codegen_app_revision"
        " AS revision WHERE revision.id = datum.revision_id AND NOT revision.is_trunk",
        "UPDATE codegen_app_series AS series SET branch_points = 1, last_at ="
        " (SELECT max(at) FROM codegen_app_datum WHERE series_id = series.id AND is_trunk)",
    ):
        connection.execute(statement)


def _users(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "INSERT INTO auth_user (username, password, is_superuser, is_staff, is_active, first_name,"
        " last_name, email, date_joined) SELECT 'person ' || n, '!', true, true, true, '', '', '',"
        " now() FROM generate_series(1, 5) AS n"
    )


def _copy(connection: psycopg.Connection[Any], table: str, columns: str, rows: Rows) -> None:
    statement = f"COPY {_APP}{table} ({columns}) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


class _Starts:
    """The first id of each visit's points and of each suite's conditions."""

    def __init__(self, content: Content) -> None:
        sizes = [content.suites[visit.suite].n_series for visit in content.visits]
        self.points = 1 + np.concatenate([[0], np.cumsum(sizes)])
        epochs = [int(suite.first_conditions[-1]) for suite in content.suites]
        self.conditions = np.concatenate([[0], np.cumsum(epochs)])


def _tables(connection: psycopg.Connection[Any], content: Content) -> _Starts:
    starts = _Starts(content)
    _copy(connection, "conditions", "id, digest, facts", _conditions(content, starts))
    _copy(
        connection,
        "series",
        "id, digest, problem, sizes, target, device_name, toolchain, metric, unit, better, points,"
        " first_at, last_at, created_at",
        _series(content),
    )
    _copy(connection, "revision", "id, repository, name, branch, at", _revisions(content))
    _copy(connection, "batch", "id, key, body_digest, answer, received_at", _batches(content))
    changes, alerts = _changes(content, starts)
    _copy(
        connection,
        "alert",
        "id, kind, revision_id, series_id, state, assignee_id, n_series, worst_ratio, cause, at,"
        " created_at, changed_at, recovered_at",
        alerts,
    )
    _copy(
        connection,
        "change",
        "series_id, datum_id, at, revision_id, previous_id, before, after, low, high, n_before,"
        " n_after, errors, worse, cause, rule, explanation, found_at, explained_at, shown_at,"
        " raised_at, alert_id",
        changes,
    )
    _events(connection)
    _settings(connection)
    return starts


def _conditions(content: Content, starts: _Starts) -> Iterator[Sequence[object]]:
    for place, suite in enumerate(content.suites):
        for series in range(suite.n_series):
            number = suite.first_series + series
            first = int(starts.conditions[place] + suite.first_conditions[series])
            last = int(starts.conditions[place] + suite.first_conditions[series + 1])
            for pk in range(first, last):
                known = facts(number, pk - first)
                yield 1 + pk, digest_of(known), json.dumps(known)


def _series(content: Content) -> Iterator[Sequence[object]]:
    first, last = _ends(content)
    for place, suite in enumerate(content.suites):
        for number in range(suite.first_series, suite.first_series + suite.n_series):
            key = series_key(number)
            yield (
                *(1 + number, key.digest, key.problem, json.dumps(dict(key.sizes)), key.target),
                *(key.device, key.toolchain, key.metric, key.unit, "lower", suite.n_revisions),
                *(first[place], last[place], first[place]),
            )


def _ends(content: Content) -> tuple[dict[int, datetime], dict[int, datetime]]:
    first: dict[int, datetime] = {}
    last: dict[int, datetime] = {}
    for visit in content.visits:
        first.setdefault(visit.suite, visit.at)
        last[visit.suite] = visit.at
    return first, last


def _revisions(content: Content) -> Iterator[Sequence[object]]:
    for visit in content.visits:
        key = revision_key(content.suites[visit.suite], visit.revision)
        yield 1 + visit.number, key.repository, key.name, key.branch, visit.at


def _batches(content: Content) -> Iterator[Sequence[object]]:
    for visit in content.visits:
        points_sent = content.suites[visit.suite].n_series
        answer = {"batch": visit.number, "points": points_sent, "series": points_sent}
        yield 1 + visit.number, f"{visit.number}", "0" * 64, json.dumps(answer), visit.at


def _changes(content: Content, starts: _Starts) -> tuple[list[Any], list[Any]]:
    """Rows of changes, and of the alerts that they are of."""
    changes: list[Any] = []
    alerts: list[Any] = []
    previous: dict[int, int] = {}
    rng = np.random.default_rng(7)
    for visit in content.visits:
        suite = content.suites[visit.suite]
        steps = suite.steps[visit.revision]
        for worse in (True, False):
            moved = np.flatnonzero(steps > 0 if worse else steps < 0)
            if not len(moved):
                continue
            cause = _CAUSES[int(rng.integers(len(_CAUSES)))]
            alert = 1 + len(alerts)
            furthest = float(np.exp(steps[moved[np.argmax(np.abs(steps[moved]))]]))
            kind = "regression" if worse else "improvement"
            row = (alert, kind, 1 + visit.number, None, len(moved), furthest, cause)
            alerts.append(_alert(row, visit.at, rng))
            for series in moved:
                after = float(suite.levels[visit.revision, series])
                ratio = float(np.exp(steps[series]))
                at = visit.at + timedelta(hours=8)
                changes.append(
                    (
                        *(1 + suite.first_series + int(series),),
                        *(int(starts.points[visit.number] + series), visit.at, 1 + visit.number),
                        *(previous.get(visit.suite), after / ratio, after, ratio * 0.99),
                        *(ratio * 1.01, min(visit.revision, 30)),
                        *(_looked_at(suite, visit.revision, series), 12.0, worse, cause, "a rule"),
                        *(_explained(cause, ratio), at, at, visit.at, at, alert),
                    )
                )
        previous[visit.suite] = 1 + visit.number
    total = content.suites[-1].first_series + content.suites[-1].n_series
    for series in rng.choice(total, _MISSING, replace=False):
        missing = (1 + len(alerts), "missing", None, 1 + int(series), 1, None, "")
        alerts.append(_alert(missing, datetime.now(UTC) - timedelta(days=3), rng))
    return changes, alerts


def _looked_at(suite: Suite, revision: int, series: np.int64) -> int:
    """How many points after a change its figures are of, once the detector has seen all of them."""
    later = np.flatnonzero(suite.steps[revision + 1 :, series])
    points_after = int(later[0]) + 1 if later.size else suite.n_revisions - revision
    return max(
        (size for size in DEFAULT_SETTINGS.sizes if size <= points_after), default=points_after
    )


def _explained(cause: str, ratio: float) -> str:
    difference = {
        **{"aspect": "code object", "before": "1f2e…", "after": "9ab0…", "name": "code_digest"},
        **{"sentence": "The code object differs.", "here": True},
    }
    return json.dumps(
        {
            **{"cause": cause, "rule": "a rule", "reasons": ["The code object differs."]},
            **{"candidates": [], "next_step": "", "feeds_noise_floor": False, "ratio": ratio},
            "differences": [difference] * 3,
        }
    )


def _alert(row: Sequence[Any], at: datetime, rng: np.random.Generator) -> tuple[object, ...]:
    pk, kind, revision, series, n_series, worst, cause = row
    age = datetime.now(UTC) - at
    is_open = age < timedelta(days=_STILL_OPEN_DAYS)
    words = _OPEN if is_open else _CLOSED
    state = words[int(rng.integers(len(words)))]
    assignee = 1 + int(rng.integers(5)) if state != "new" else None
    created = at + timedelta(hours=8)
    recovered = created + timedelta(days=2) if rng.random() < 0.1 else None
    return (
        *(pk, kind, revision, series, state, assignee, n_series, worst, cause, at, created),
        *(created, recovered),
    )


def _events(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        f"INSERT INTO {_APP}alertevent (alert_id, kind, at, note, before, after)"
        f" SELECT id, 'raised', created_at, '', '{{}}', '{{}}' FROM {_APP}alert ORDER BY id"
    )
    connection.execute(
        f"INSERT INTO {_APP}alertevent (alert_id, kind, at, by_id, note, before, after)"
        " SELECT id, 'state', created_at + interval '1 day', assignee_id, '',"
        " jsonb_build_object('state', 'new'), jsonb_build_object('state', state)"
        f" FROM {_APP}alert WHERE state <> 'new' ORDER BY id"
    )
    connection.execute(
        f"INSERT INTO {_APP}alertevent (alert_id, kind, at, by_id, note, before, after)"
        " SELECT id, 'note', created_at + interval '2 days', assignee_id,"
        f" 'seen on the other host too', '{{}}', '{{}}' FROM {_APP}alert"
        " WHERE assignee_id IS NOT NULL AND id % 5 = 0 ORDER BY id"
    )


def _settings(connection: psycopg.Connection[Any]) -> None:
    """Rules and baselines of some series, channels, and what was sent by them."""
    connection.execute(
        f"INSERT INTO {_APP}seriesrule (series_id, least_effect, muted, reason, changed_at)"
        f" SELECT id, 0.05, id % 500 = 0, 'it is noisy', now() FROM {_APP}series WHERE id % 100 = 0"
    )
    connection.execute(
        f"INSERT INTO {_APP}baseline (series_id, at, reason, created_at)"
        f" SELECT id, first_at + interval '200 days', 'another machine', now()"
        f" FROM {_APP}series WHERE id % 50 = 0"
    )
    for name, kind, address in (
        ("team", "webhook", "https://example.org/hook"),
        ("on call", "email", "on-call@example.org"),
    ):
        connection.execute(
            f"INSERT INTO {_APP}channel (name, kind, address, alerts, search, active, key_salt,"
            " created_at)"
            " VALUES (%s, %s, %s, ARRAY['regression', 'missing'], '', false, %s, now())",
            [name, kind, address, "0" * 32],
        )
    told = connection.execute(
        f"SELECT channel.id, event.id, event.at FROM {_APP}alertevent AS event,"
        f" {_APP}channel AS channel WHERE event.kind = 'raised' AND event.at > %s",
        [datetime.now(UTC) - timedelta(days=_TOLD_DAYS)],
    ).fetchall()
    _copy(
        connection,
        "delivery",
        "channel_id, event_id, key, state, attempts, next_at, error, created_at, ended_at",
        (
            (channel, event, uuid.uuid4(), "delivered", 1, at, "", at, at)
            for channel, event, at in told
        ),
    )


def _points(connection: psycopg.Connection[Any], content: Content, starts: _Starts) -> None:
    with connection.cursor() as cursor, cursor.copy(points.COPY) as copy:
        copy.write(points.SIGNATURE)
        for visit in content.visits:
            first = int(starts.points[visit.number])
            conditions = int(starts.conditions[visit.suite])
            copy.write(points.rows(content, visit, first, conditions))
        copy.write(points.END)


def _sequences(connection: psycopg.Connection[Any]) -> None:
    """New rows come after those that were copied with their numbers."""
    for table in ("conditions", "series", "revision", "batch", "alert", "datum"):
        connection.execute(
            f"SELECT setval(pg_get_serial_sequence('{_APP}{table}', 'id'),"
            f" (SELECT max(id) FROM {_APP}{table}))"
        )
