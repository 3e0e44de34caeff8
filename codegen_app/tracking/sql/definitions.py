"""The views of the schema ``kiln_read``, and what each column means.

Their names and columns are an interface: dashboards and notebooks of others use them. Columns may
be added; a name that is there keeps its meaning. docs/tracking.md has them as tables.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen_app.tracking.models import OPEN_ALERT_STATES
from scheduler.targets import registry
from scheduler.track.generated_label import LABEL

SCHEMA = "kiln_read"


@dataclass(frozen=True)
class Column:
    """A column: its expression, and its meaning in one sentence without a full stop."""

    name: str
    expression: str
    meaning: str


@dataclass(frozen=True)
class View:
    """A view: its rows are those of ``source``, what follows FROM."""

    name: str
    about: str
    source: str
    columns: tuple[Column, ...]

    @property
    def statement(self) -> str:
        """Return the statement that creates it."""
        columns = ",\n    ".join(f"{column.expression} AS {column.name}" for column in self.columns)
        return f"CREATE VIEW {SCHEMA}.{self.name} AS SELECT\n    {columns}\nFROM {self.source}"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _one_of(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(map(_literal, values))})" if values else "false"


def _is_generated(column: str) -> str:
    return f"starts_with({column}, {_literal(LABEL)})"


def views() -> tuple[View, ...]:
    """Return the views; none reads another."""
    return (_series(), _points(), _levels(), _changes(), _alerts(), _findings(), _revisions())


def _series() -> View:
    emulated = tuple(sorted(name for name in registry.names() if registry.find(name).emulates))
    plain = (
        ("problem", "the name of the problem"),
        ("sizes", "the sizes of the problem, as JSON"),
        ("target", "the compilation target, for example sm_90; empty if unknown"),
    )
    return View(
        "series",
        "One row per series.",
        """codegen_app_series AS series
    LEFT JOIN codegen_app_seriesrule AS rule ON rule.series_id = series.id
    LEFT JOIN codegen_app_patternrule AS pattern ON pattern.id = series.pattern_rule_id
    LEFT JOIN codegen_app_patternrule AS owning ON owning.id = series.owner_rule_id
    LEFT JOIN auth_user AS owner ON owner.id = owning.owner_id""",
        (
            Column("id", "series.id", "the number of the series, as in its URL"),
            *(Column(name, f"series.{name}", meaning) for name, meaning in plain),
            Column("device", "series.device_name", "the device model"),
            Column("toolchain", "series.toolchain", "the compiler without its version"),
            Column("metric", "series.metric", "the metric, for example time"),
            Column("unit", "series.unit", "the unit of all values of the series"),
            Column("better", "series.better", "which values are better: lower or higher"),
            Column("repository", "series.repository", "the repository of the latest point"),
            Column("path", "series.path", "the path of the source, from the latest point"),
            Column("points", "series.points", "the number of points, branches included"),
            Column("first_at", "series.first_at", "the time of the first point in the history"),
            Column("last_at", "series.last_at", "the time of the last point in the history"),
            Column(
                "muted",
                "COALESCE(rule.muted, pattern.muted, false)",
                "whether changes raise no alerts",
            ),
            Column("owner", "owner.username", "the owner by rule; null without an owner"),
            Column(
                "generated",
                _is_generated("series.device_name"),
                "whether the values were generated, not measured",
            ),
            Column(
                "emulated",
                _one_of("series.target", emulated),
                "whether the values are of an emulation of the target",
            ),
        ),
    )


def _points() -> View:
    plain = (
        ("at", "the time in the history: that of the revision if known, else of the measurement"),
        ("measured_at", "the time of the measurement"),
        ("value", "the value in the unit of the series"),
        ("low", "the lower bound of the value; null if n is 1"),
        ("high", "the upper bound of the value; null if n is 1"),
        (
            "n",
            "the number of samples; the bounds are their range if there are fewer than 6, else a"
            " 95% interval",
        ),
        ("source", "how the point was stored: api, tuning, again, import or generated"),
    )
    withdrawal = """(SELECT {what} FROM codegen_app_withdrawal AS withdrawal
        WHERE withdrawal.datum_id = datum.id AND withdrawal.restored_at IS NULL{more})"""
    withdrawn = withdrawal.format(what="", more="")
    set_aside = withdrawal.format(what="", more=" AND withdrawal.alert_id IS NOT NULL")
    return View(
        "points",
        "One row per point of a series. Filter by series: there may be millions.",
        """codegen_app_datum AS datum
    JOIN codegen_app_revision AS revision ON revision.id = datum.revision_id
    JOIN codegen_app_conditions AS conditions ON conditions.id = datum.conditions_id
    LEFT JOIN codegen_app_daysummary AS day ON day.datum_id = datum.id""",
        (
            Column("id", "datum.id", "the number of the point"),
            Column("series", "datum.series_id", "the series"),
            *(Column(name, f"datum.{name}", meaning) for name, meaning in plain),
            Column("revision", "revision.name", "the commit or version that was measured"),
            Column("branch", "revision.branch", "the branch of the revision; empty if unknown"),
            Column("repository", "revision.repository", "the repository; empty if unknown"),
            Column("is_trunk", "datum.is_trunk", "whether the point is of the trunk's history"),
            Column("host", "conditions.facts ->> 'host'", "the host; null if not recorded"),
            Column("driver", "conditions.facts ->> 'driver'", "the driver; null if not recorded"),
            Column(
                "compiler",
                "conditions.facts ->> 'toolchain_version'",
                "the version of the compiler; null if not recorded",
            ),
            Column(
                "withdrawn", f"EXISTS {withdrawn}", "whether the point is excluded from comparisons"
            ),
            Column(
                "set_aside",
                f"EXISTS {set_aside}",
                "whether it was withdrawn with all points of its machine",
            ),
            Column(
                "day_points",
                "day.points",
                "the number of points of its day that it stands for, as their median, since the"
                " others were rolled up; else null",
            ),
            Column("day_low", "day.low", "the smallest value of these points"),
            Column("day_high", "day.high", "the largest value of these points"),
        ),
    )


def _levels() -> View:
    return View(
        "levels",
        "The level between two changes of a series. A series without changes has no row.",
        """(
        SELECT series_id, at AS begins_at, lead(at) OVER history AS ends_at, after AS level,
            id AS change_id
        FROM codegen_app_change WHERE withdrawn_at IS NULL
        WINDOW history AS (PARTITION BY series_id ORDER BY at, id)
        UNION ALL
        SELECT first.series_id, series.first_at, first.at, first.before, NULL
        FROM (
            SELECT DISTINCT ON (series_id) series_id, at, before FROM codegen_app_change
            WHERE withdrawn_at IS NULL ORDER BY series_id, at, id
        ) AS first JOIN codegen_app_series AS series ON series.id = first.series_id
    ) AS level""",
        (
            Column("series", "level.series_id", "the series"),
            Column("begins_at", "level.begins_at", "the time of the first point of the level"),
            Column("ends_at", "level.ends_at", "the time of the next change; null for the last"),
            Column("level", "level.level", "the median in the unit of the series"),
            Column("change", "level.change_id", "the change that begins it; null for the first"),
        ),
    )


def _changes() -> View:
    plain = (
        ("at", "the time in the history of the first point of the new level"),
        ("before", "the median before the change, in the unit of the series"),
        ("after", "the median after the change"),
        ("n_before", "the number of values before"),
        ("n_after", "the number of values after"),
        ("worse", "whether the change is in the wrong direction"),
        (
            "cause",
            "code, tuning, compiler, environment, noise or unknown; empty if not explained yet",
        ),
        ("found_at", "when the change was found"),
        ("withdrawn_at", "when later points contradicted it; null if it stands"),
    )
    names = dict(plain)
    return View(
        "changes",
        "One row per change of a series, withdrawn ones included.",
        """codegen_app_change AS change
    JOIN codegen_app_revision AS revision ON revision.id = change.revision_id
    LEFT JOIN codegen_app_revision AS previous ON previous.id = change.previous_id""",
        (
            Column("id", "change.id", "the number of the change, as in its URL"),
            Column("series", "change.series_id", "the series"),
            Column("alert", "change.alert_id", "the alert; null if it raised none"),
            *(Column(name, f"change.{name}", names[name]) for name in ("at", "before", "after")),
            Column("ratio", "change.after / change.before", "after / before"),
            Column(
                "ratio_low", "change.low", "the lower bound of the ratio at 95%; null if unknown"
            ),
            Column("ratio_high", "change.high", "the upper bound of the ratio at 95%"),
            *(Column(name, f"change.{name}", meaning) for name, meaning in plain[3:]),
            Column("revision", "revision.name", "the first revision of the new level"),
            Column("previous_revision", "previous.name", "the last revision of the old level"),
            Column("branch", "revision.branch", "the branch of the revision"),
            Column("repository", "revision.repository", "the repository of the revision"),
        ),
    )


def _alerts() -> View:
    plain = (
        ("kind", "regression, improvement, missing, machine, drift, spread or mode"),
        ("state", "new, acknowledged, investigating, expected, fixed, invalid or history"),
        ("at", "the place in the history"),
        ("created_at", "when the alert was raised"),
        ("changed_at", "when the alert last changed"),
        ("recovered_at", "since when the series are back; null if they are not"),
        ("n_series", "the number of series"),
        ("worst_ratio", "the ratio furthest from 1 among its changes"),
        ("cause", "the cause of the largest change"),
    )
    return View(
        "alerts",
        "One row per alert.",
        """codegen_app_alert AS alert
    LEFT JOIN codegen_app_revision AS revision ON revision.id = alert.revision_id
    LEFT JOIN codegen_app_revision AS good ON good.id = alert.good_revision_id
    LEFT JOIN codegen_app_series AS series ON series.id = alert.series_id
    LEFT JOIN auth_user AS assignee ON assignee.id = alert.assignee_id""",
        (
            Column("id", "alert.id", "the number of the alert, as in its URL"),
            *(Column(name, f"alert.{name}", meaning) for name, meaning in plain),
            Column(
                "is_open",
                _one_of("alert.state", tuple(state.value for state in OPEN_ALERT_STATES)),
                "whether the state is new, acknowledged or investigating",
            ),
            Column("assignee", "assignee.username", "the assignee; null without an assignee"),
            Column("series", "alert.series_id", "the series, if the alert is about one; else null"),
            Column("machine", "NULLIF(alert.machine, '')", "the machine that changed; else null"),
            Column("revision", "revision.name", "the first bad revision that is known; else null"),
            Column("good_revision", "good.name", "the last good revision that is known; else null"),
            Column("branch", "revision.branch", "the branch of the revision"),
            Column("repository", "revision.repository", "the repository of the revision"),
            Column("duplicate_of", "alert.duplicate_of_id", "the alert that it repeats"),
            Column("downstream_of", "alert.downstream_of_id", "the alert that it follows from"),
            Column(
                "generated",
                " OR ".join(
                    f"COALESCE({_is_generated(name)}, false)"
                    for name in ("revision.repository", "series.device_name", "alert.machine")
                ),
                "whether its data was generated, not measured",
            ),
        ),
    )


def _findings() -> View:
    plain = (
        ("kind", "drift, spread or mode"),
        ("before", "the level before; of a spread, the standard deviation as a part of the level"),
        ("after", "the same now; of a mode, the level of the second mode"),
        ("ratio", "after / before"),
        ("n_before", "the number of points before"),
        ("n_after", "the number of points that show it"),
        ("share", "of a mode, the part of these points that is on it; else null"),
        ("ended_at", "when it was no longer found; null if it holds"),
    )
    return View(
        "findings",
        "One row per drift, change of spread or second mode of a series.",
        """codegen_app_seriesfinding AS finding
    JOIN codegen_app_alert AS alert ON alert.id = finding.alert_id
    JOIN codegen_app_revision AS revision ON revision.id = finding.revision_id""",
        (
            Column("alert", "finding.alert_id", "the alert"),
            Column("series", "finding.series_id", "the series"),
            Column("at", "alert.at", "the time in the history of the first point that shows it"),
            *(Column(name, f"finding.{name}", meaning) for name, meaning in plain),
            Column("ratio_low", "finding.low", "the lower bound of the ratio at 95%"),
            Column("ratio_high", "finding.high", "the upper bound of the ratio at 95%"),
            Column("revision", "revision.name", "the revision of that point"),
        ),
    )


def _revisions() -> View:
    plain = (
        ("id", "the number of the revision"),
        ("name", "the commit or version"),
        ("repository", "the repository; empty if unknown"),
        ("branch", "the branch; empty if unknown"),
        ("at", "when it was created; null if unknown"),
        ("is_trunk", "whether its points are of the trunk"),
        ("merge_base", "the revision of the trunk that its branch forked from; empty if unknown"),
        ("pull_request", "the number or URL of its pull request; empty if unknown"),
    )
    return View(
        "revisions",
        "One row per revision on a branch.",
        "codegen_app_revision AS revision",
        tuple(Column(name, f"revision.{name}", meaning) for name, meaning in plain),
    )
