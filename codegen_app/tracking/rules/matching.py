"""Series that patterns select."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from scheduler.track.patterns import SeriesFacts, SeriesPatterns

# PostgreSQL compares names; paths, whose syntax LIKE does not have, are compared here, after LIKE
# has excluded most of them.
_COLUMNS = {
    "repository": "repository",
    "problem": "problem",
    "device": "device_name",
    "metric": "metric",
    "path": "path",
}
_MATCHING = """
SELECT id, repository, problem, device_name, metric, path FROM codegen_app_series
WHERE last_at IS NOT NULL{conditions} ORDER BY id
"""


def matching_series(patterns: SeriesPatterns) -> list[int]:
    """Return the keys of the series with points that match, in order (1 query)."""
    conditions, values = [], []
    for name, column in _COLUMNS.items():
        if alternatives := getattr(patterns, name):
            conditions.append(f" AND {column} ILIKE ANY(%s)")
            values.append([_superset(pattern, name) for pattern in alternatives])
    with connection.cursor() as cursor:
        cursor.execute(_MATCHING.format(conditions="".join(conditions)), values)
        return [pk for pk, *facts in cursor.fetchall() if patterns.matches(SeriesFacts(*facts))]


def _superset(pattern: str, fact: str) -> str:
    """Return a pattern of LIKE that matches at least what a pattern matches. The case of letters
    that are not ASCII depends on the database's locale: they match anything here."""
    if fact == "path":
        return f"%{_longest_literal(pattern)}%"
    texts = {"*": "%", "?": "_", "%": "\\%", "_": "\\_", "\\": "\\\\"}
    return "".join(
        texts.get(character, character if character.isascii() else "%") for character in pattern
    )


def _longest_literal(pattern: str) -> str:
    """Return the longest part of a path's segment without wildcards, escaped."""
    for wildcard in "*?/_":
        pattern = pattern.replace(wildcard, "%")
    parts: Sequence[str] = pattern.split("%")
    literal = max(parts, key=len)
    return literal if literal.isascii() else ""
