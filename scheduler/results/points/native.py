"""Reads and writes Kiln's own JSON of points. ``defaults`` are fields of every point that does not
override them, so that a batch of one device names it once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from scheduler.errors import UserError
from scheduler.results.points import fields
from scheduler.results.points.model import (
    COMMIT_TEXTS,
    FACTS,
    KIND,
    MAX_MEASUREMENTS,
    MAX_POINTS,
    MAX_SAMPLES,
    REVISION_TEXTS,
    SCHEMA,
    ImportContext,
    Point,
    Points,
    RevisionKey,
    SeriesKey,
    better_direction,
)

_MAX_TEXT_CHARS = {
    "problem": 500,
    "device": 200,
    "metric": 80,
    "target": 40,
    "toolchain": 40,
    "unit": 40,
}
_OPTIONAL_TEXTS = ("merge_base", "pull_request", "default_branch", "subject", "author")
_REQUIRED_TEXTS = ("problem", "device", "metric")
_FIELDS = {
    *_MAX_TEXT_CHARS,
    *("sizes", "value", "low", "high", "n", "samples", "better"),
    *("measured_at", "revision", "conditions"),
}
_REQUIRED_FIELDS = {*_REQUIRED_TEXTS, "value"}
_MAX_FACT_CHARS = 1_000
_SHORT_HASH = re.compile("[0-9a-f]{7,}")
_MAX_SIZES = 100
_FAST_SIZE_LIMIT = 2**62
#: The total size of the objects in conditions that are not small and flat, in one document: each of
#: their parts is checked.
_MAX_NESTED_BYTES = 4 << 20


def accepts(content: Any) -> bool:
    """Whether the content declares Kiln's kind of points."""
    return isinstance(content, dict) and content.get("kind") == KIND


def read(content: Any, context: ImportContext) -> Points:
    """Return the points of a document. Raises ``UserError`` naming the row and the field."""
    document = fields.as_object(content, "points")
    fields.require(document.get("kind") == KIND, "kind", f"expected {KIND!r}")
    fields.require(
        document.get("schema") == SCHEMA, "schema", f"this version of Kiln supports only {SCHEMA}"
    )
    fields.reject_unknown(document, ("kind", "schema", "defaults", "points"), "document")
    defaults = fields.as_object(document.get("defaults", {}), "defaults")
    fields.reject_unknown(defaults, _FIELDS, "defaults")
    rows = fields.as_list(document.get("points"), "points")
    fields.require(1 <= len(rows) <= MAX_POINTS, "points", f"expected 1 to {MAX_POINTS} points")
    reader = _Reader(defaults, context)
    return Points(tuple(reader.point(row, f"points[{index}]") for index, row in enumerate(rows)))


class _Reader:
    """Reads the points of one document. Shared values are checked once, and values that are nearly
    always valid are first checked as a whole: ten thousand points have a million parts, and each
    call per part counts."""

    def __init__(self, defaults: Mapping[str, Any], context: ImportContext) -> None:
        context_fields = {
            name: getattr(context, name) for name in ("device", "target", "toolchain")
        }
        self._defaults = {name: text for name, text in context_fields.items() if text} | dict(
            defaults
        )
        self._shared = {id(value) for value in self._defaults.values()}
        self._context = context
        self._checked: dict[tuple[str, int], Any] = {}
        self._keys: dict[tuple[Any, ...], SeriesKey] = {}
        self._revision_texts = {name: getattr(context, name) for name in REVISION_TEXTS}
        self._other_commit_texts = self._revision_texts | dict.fromkeys(COMMIT_TEXTS, "")
        self._revisions: dict[str, RevisionKey] = {}
        self._moments: dict[str, datetime] = {}
        self._texts: set[tuple[str, str]] = set()
        self._valid_size_names: set[str] = set()
        self._objects: set[tuple[Any, ...]] = set()
        self._nested_bytes = 0

    def point(self, row: Any, path: str) -> Point:
        row_fields = fields.as_object(row, path)
        if not row_fields.keys() <= _FIELDS:
            fields.reject_unknown(row_fields, _FIELDS, path)
        values = self._defaults | row_fields
        if not values.keys() >= _REQUIRED_FIELDS:
            missing = next(name for name in (*_REQUIRED_TEXTS, "value") if name not in values)
            raise UserError(f"{path}.{missing}: missing")
        unit = fields.as_text(values.get("unit", ""), f"{path}.unit", 40)
        value = fields.as_number(values["value"], f"{path}.value")
        samples = self._check_once(_samples, values.get("samples", []), f"{path}.samples")
        if (values.get("low") is None) != (values.get("high") is None):
            raise UserError(f"{path}.low: low and high must be given together")
        low, high = fields.as_bounds(values, ("low", "high"), value, path)
        better = values.get("better", better_direction(unit))
        if better not in ("lower", "higher"):
            raise UserError(f'{path}.better: expected "lower" or "higher"')
        measured_at = self._context.measured_at or self._context.now
        if "measured_at" in values:
            measured_at = self._moment(values["measured_at"], f"{path}.measured_at")
        return Point(
            series=self._series(values, unit, path),
            value=value,
            measured_at=measured_at,
            revision=self._check_once(self._revision, values.get("revision"), f"{path}.revision"),
            low=low,
            high=high,
            n=fields.as_count(
                values.get("n", len(samples) or 1), f"{path}.n", MAX_MEASUREMENTS, minimum=1
            ),
            samples=samples,
            better=better,
            conditions=self._check_once(
                self._conditions, values.get("conditions", {}), f"{path}.conditions"
            ),
        )

    def _check_once(self, check: Any, value: Any, path: str) -> Any:
        """Check a default only once: the identical value is the same for every row."""
        if id(value) not in self._shared:
            return check(value, path)
        key = (check.__name__, id(value))
        if key not in self._checked:
            self._checked[key] = check(value, path)
        return self._checked[key]

    def _series(self, values: Mapping[str, Any], unit: str, path: str) -> SeriesKey:
        """Return the series' key, shared by its points, so that its hash is computed once."""
        sizes = self._check_sizes(values.get("sizes", {}), f"{path}.sizes")
        key_texts = [values.get(name, "") for name in _MAX_TEXT_CHARS]
        try:
            key_values = (*key_texts, *sorted(sizes.items()))
            key = self._keys.get(key_values)
        except TypeError:  # a text of the wrong type: the check below names it
            key_values, key = (), None
        if key is None:
            texts = dict(zip(_MAX_TEXT_CHARS, key_texts, strict=True))
            # Series of one batch differ in their problem, and agree in nearly all else.
            if not key_values or not texts.items() <= self._texts:
                for name, text in texts.items():
                    empty = name not in _REQUIRED_TEXTS
                    fields.as_text(text, f"{path}.{name}", _MAX_TEXT_CHARS[name], empty=empty)
                self._texts.update(texts.items())
            key = self._keys[key_values] = SeriesKey(**texts | {"unit": unit}, sizes=sizes)
        return key

    def _check_sizes(self, value: Any, path: str) -> dict[str, int]:
        """Check the names of sizes once; most numbers are small ones."""
        if (
            type(value) is dict
            and self._valid_size_names.issuperset(value)
            and len(value) <= _MAX_SIZES
        ):
            for size in value.values():
                if type(size) is not int or not 0 <= size < _FAST_SIZE_LIMIT:
                    break
            else:
                return value
        sizes = fields.as_object(value, path)
        fields.require(len(sizes) <= _MAX_SIZES, path, f"more than {_MAX_SIZES}")
        for name, size in sizes.items():
            fields.as_text(name, path, 80, empty=False)
            fields.as_count(size, f"{path}.{name[:80]}")
        self._valid_size_names.update(sizes)
        return sizes

    def _moment(self, text: Any, path: str) -> datetime:
        moment = self._moments.get(text) if isinstance(text, str) else None
        if moment is None:
            moment = fields.check_clock(fields.as_timestamp(text, path), self._context.now, path)
            self._moments[text] = moment
        return moment

    def _conditions(self, value: Any, path: str) -> dict[str, Any]:
        facts = fields.as_object(value, path)
        for name, fact in facts.items():
            kind = FACTS.get(name)
            if kind is None:
                fields.reject_unknown(facts, FACTS, path)
            elif kind is not str:
                self._object(fact, path, name)
            elif not fields.is_plain_text(fact, _MAX_FACT_CHARS):
                fields.as_text(fact, f"{path}.{name}", _MAX_FACT_CHARS)
        return facts

    def _object(self, fact: Any, path: str, name: str) -> None:
        """Check an object. Points built alike have equal ones; an object equal to a valid one is
        valid, even if its whole numbers are written as floats."""
        try:
            content = tuple(fact.items())
            if content in self._objects:
                return
        except (AttributeError, TypeError):  # not an object, or it contains lists and objects
            content = ()
        path = f"{path}.{name}"
        content_object = fields.as_object(fact, path)
        if fields.is_flat_and_small(content_object):
            self._objects.add(content)
            return
        self._nested_bytes += fields.json_size(content_object, path)
        if self._nested_bytes > _MAX_NESTED_BYTES:
            raise UserError(
                f"{path}: nested objects have more than {_MAX_NESTED_BYTES} bytes in total:"
                " split the batch"
            )
        fields.require_json(content_object, path)

    def _revision(self, value: Any, path: str) -> RevisionKey:
        context = self._context
        if value is None:
            fields.require(bool(context.revision), path, "missing")
            return context.revision_key
        if isinstance(value, str) and value in self._revisions:
            return self._revisions[value]
        row = fields.as_object({"name": value} if isinstance(value, str) else value, path)
        fields.reject_unknown(row, ("name", "at", "merge_base_at", *REVISION_TEXTS), path)
        name = fields.as_text(row.get("name"), f"{path}.name", 100, empty=False)
        # The options may describe another commit, such as the one that is checked out.
        is_same = _is_same_commit(name, context.revision)
        is_described = is_same or not context.revision
        texts = dict(self._revision_texts if is_described else self._other_commit_texts)
        for text_name in row.keys() & REVISION_TEXTS:
            most = REVISION_TEXTS[text_name]
            texts[text_name] = fields.as_text(row[text_name], f"{path}.{text_name}", most)
        fields.check_branch(texts["default_branch"], f"{path}.default_branch")

        def moment(field_name: str, default: datetime | None) -> datetime | None:
            if row.get(field_name) is not None:
                return self._moment(row[field_name], f"{path}.{field_name}")
            return default if is_same else None

        revision = RevisionKey(
            name=name,
            at=moment("at", context.revision_at),
            merge_base_at=moment("merge_base_at", context.merge_base_at),
            **texts,
        )
        if isinstance(value, str):
            self._revisions[value] = revision
        return revision


def _is_same_commit(name: str, revision: str) -> bool:
    """Return whether both name one commit: a hash may be shortened, or have the suffix of a changed
    checkout."""
    short, full = sorted((text.removesuffix("-dirty") for text in (name, revision)), key=len)
    return short == full or bool(_SHORT_HASH.fullmatch(short) and full.startswith(short))


def _samples(values: Any, path: str) -> tuple[float, ...]:
    samples = fields.as_list(values, path)
    fields.require(len(samples) <= MAX_SAMPLES, path, f"more than {MAX_SAMPLES}")
    return tuple(fields.as_numbers(samples, path))


def write(points: Sequence[Point]) -> dict[str, Any]:
    """Return the document of points. Raises ``UserError`` for Kiln's own problems, whose
    measurements are exported as recorded results."""
    rows = []
    for point in points:
        if point.series.own:
            raise UserError(
                f"{point.series.problem}: a problem of Kiln: export recorded results instead"
            )
        revision = point.revision
        point_row: dict[str, Any] = {
            **{name: getattr(point.series, name) for name in _MAX_TEXT_CHARS},
            "sizes": dict(point.series.sizes),
            "value": point.value,
            "n": point.n,
            "better": point.better,
            "measured_at": point.measured_at.isoformat(),
            "revision": {
                "name": revision.name,
                "branch": revision.branch,
                "repository": revision.repository,
                **{name: text for name in _OPTIONAL_TEXTS if (text := getattr(revision, name))},
                **{
                    name: moment.isoformat()
                    for name in ("at", "merge_base_at")
                    if (moment := getattr(revision, name))
                },
            },
            "conditions": dict(point.conditions),
        }
        if point.low is not None:
            point_row |= {"low": point.low, "high": point.high}
        if point.samples:
            point_row["samples"] = list(point.samples)
        rows.append(point_row)
    return {"kind": KIND, "schema": SCHEMA, "points": rows}
