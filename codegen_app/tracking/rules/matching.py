"""Series that patterns select."""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.db import connection

from scheduler.track.patterns import FACT_NAMES, SeriesFacts, SeriesPatterns

# PostgreSQL compares names; paths, whose syntax LIKE does not have, are compared here, after LIKE
# has excluded most of them.
_COLUMNS = {"device": "device_name"}
_MATCHING = """
SELECT asked.number, series.id, repository, problem, device_name, metric, path
FROM json_to_recordset(%s::json) AS asked(number integer, {types})
JOIN codegen_app_series AS series ON {conditions}
WHERE series.last_at IS NOT NULL ORDER BY asked.number, series.id
""".format(
    types=", ".join(f"{name}_like text[]" for name in FACT_NAMES),
    conditions=" AND ".join(
        f"({name}_like IS NULL OR series.{_COLUMNS.get(name, name)} ILIKE ANY({name}_like))"
        for name in FACT_NAMES
    ),
)


def matching_series(patterns: SeriesPatterns) -> list[int]:
    """Return the keys of the series with points that match, in order (1 query)."""
    [keys] = matching_sets([patterns])
    return keys


def matching_sets(sets: Sequence[SeriesPatterns]) -> list[list[int]]:
    """Return the keys of the series that match each of some patterns (1 query)."""
    asked = [
        {
            "number": number,
            **{
                f"{name}_like": [_superset(pattern, name) for pattern in alternatives]
                for name in FACT_NAMES
                if (alternatives := getattr(patterns, name))
            },
        }
        for number, patterns in enumerate(sets)
    ]
    found: list[list[int]] = [[] for _ in sets]
    with connection.cursor() as cursor:
        cursor.execute(_MATCHING, [json.dumps(asked)])
        for number, pk, *facts in cursor.fetchall():
            if sets[number].matches(SeriesFacts(*facts)):
                found[number].append(pk)
    return found


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
    """Return the longest part of a path's segment without wildcards of either syntax."""
    for wildcard in "*?/_":
        pattern = pattern.replace(wildcard, "%")
    literal = max(pattern.split("%"), key=len)
    return literal if literal.isascii() else ""
