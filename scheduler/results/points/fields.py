"""Checks fields of untrusted JSON: each error names the row and the field."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler.errors import UserError
from scheduler.text import one_line

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
LARGEST = 2**63 - 1
_MAX_JSON_BYTES, _MAX_DEPTH = 65_536, 20
_MAX_FLAT_FIELDS, _MAX_FLAT_CHARS = 50, 100
_NUMBER_TYPES = {int, float}  # excludes bool

MIN_MAGNITUDE, MAX_MAGNITUDE = 1e-150, 1e150
"""The magnitudes of nonzero numbers: the ratio of any two is also a float."""

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""Clocks that were never set begin at 1970 or 1980."""

MAX_CLOCK_SKEW = timedelta(minutes=5)
"""How far the measuring machine's clock may be ahead of this one."""


def require(holds: bool, path: str, why: str) -> None:
    """Raise ``UserError`` with the field's position."""
    if not holds:
        raise UserError(f"{path}: {why}")


class DuplicateKeys(dict[str, Any]):
    """A JSON object with duplicate ``names``; it holds the last value of each."""

    names: frozenset[str]


def object_from_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object for ``json.loads`` (``object_pairs_hook``)."""
    content = dict(pairs)
    if len(content) == len(pairs):
        return content
    duplicates = DuplicateKeys(content)
    counts = Counter(name for name, _ in pairs)
    duplicates.names = frozenset(name for name, count in counts.items() if count > 1)
    return duplicates


def as_object(value: Any, path: str) -> dict[str, Any]:
    """Return a JSON object in which every name occurs once."""
    require(isinstance(value, dict), path, "expected a JSON object")
    if isinstance(value, DuplicateKeys):
        raise UserError(f"{path}: {one_line(min(value.names), 40)!r} occurs more than once")
    return dict(value)


def as_list(value: Any, path: str) -> list[Any]:
    """Return a JSON array."""
    require(isinstance(value, list), path, "expected a JSON array")
    return list(value)


def reject_unknown(keys: Iterable[str], names: Container[str], path: str) -> None:
    """Reject fields that nothing reads: a misspelt one would be ignored."""
    for name in sorted(name for name in keys if name not in names):
        raise UserError(f"{path}.{one_line(name, 40)}: unknown field")


def as_text(value: Any, path: str, max_chars: int, *, empty: bool = True) -> str:
    """Return text that fits a column of ``max_chars`` characters."""
    if not isinstance(value, str):
        raise UserError(f"{path}: expected a string")
    require(empty or bool(value.strip()), path, "must not be empty")
    if len(value) > max_chars:
        raise UserError(f"{path}: more than {max_chars} characters")
    if not value.isascii() or "\0" in value:
        require(not UNSTORABLE.search(value), path, "must not contain NUL or unpaired surrogates")
    return value


def check_branch(name: str, path: str) -> str:
    """Return the name of a branch. Raises ``UserError`` if it has spaces, which Git does not allow:
    several names are stored as one text."""
    require(len(name.split()) <= 1 and name == name.strip(), path, "a branch name has no spaces")
    return name


def as_number(value: Any, path: str) -> float:
    """Return a finite number: 0, or of a size from ``MIN_MAGNITUDE`` to ``MAX_MAGNITUDE``."""
    if type(value) in _NUMBER_TYPES and (not value or MIN_MAGNITUDE <= abs(value) <= MAX_MAGNITUDE):
        return float(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    require(is_number, path, "expected a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    require(math.isfinite(number), path, "must be finite")
    expected = f"expected 0 or a magnitude from {MIN_MAGNITUDE:g} to {MAX_MAGNITUDE:g}"
    raise UserError(f"{path}: {expected}: use another unit")


def as_numbers(values: Sequence[Any], path: str) -> list[float]:
    """Return numbers as ``as_number`` does. They are checked together; only if one is wrong, they
    are checked one by one to find it."""
    if _NUMBER_TYPES.issuperset(map(type, values)):
        try:
            numbers = list(map(float, values))
        except OverflowError:
            numbers = [math.inf]
        # The sum is not finite if one of them is not; NaN compares with no magnitude.
        if math.isfinite(sum(numbers)):
            largest = max(map(abs, numbers), default=0.0)
            smallest = min(filter(None, map(abs, numbers)), default=MIN_MAGNITUDE)
            if smallest >= MIN_MAGNITUDE and largest <= MAX_MAGNITUDE:
                return numbers
    return [as_number(value, f"{path}[{index}]") for index, value in enumerate(values)]


def as_bounds(
    row: Mapping[str, Any], names: tuple[str, str], value: float, path: str
) -> tuple[float | None, float | None]:
    """Return the lower and the upper bound of a value, None where the row has none."""
    low, high = (
        None if row.get(name) is None else as_number(row[name], f"{path}.{name}") for name in names
    )
    require(low is None or low <= value, f"{path}.{names[0]}", "must not be above the value")
    require(high is None or high >= value, f"{path}.{names[1]}", "must not be below the value")
    return low, high


def as_count(value: Any, path: str, maximum: int = LARGEST, *, minimum: int = 0) -> int:
    """Return a whole number within bounds."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    require(
        is_whole and minimum <= value <= maximum,
        path,
        f"expected an integer from {minimum} to {maximum}",
    )
    return int(value)


def as_timestamp(value: Any, path: str) -> datetime:
    """Return a timestamp in ISO 8601; without an offset it is UTC."""
    text = as_text(value, path, 40)
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UserError(f"{path}: {one_line(text, 40)!r} is not a time in ISO 8601") from None
    require(1970 <= moment.year <= 2200, path, "the year must be between 1970 and 2200")
    return moment


def check_clock(moment: datetime, now: datetime, path: str) -> datetime:
    """Return the timestamp unless it shows that the measuring machine's clock is wrong: before
    2000, the point would be the first of its series, and in the future the latest until that day.
    """
    if moment < EARLIEST:
        raise UserError(
            f"{path}: {moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC is before {EARLIEST:%Y}: check"
            " the clock of the measuring machine"
        )
    if moment > now + MAX_CLOCK_SKEW:
        raise UserError(
            f"{path}: {moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC is in the future: the"
            f" server time is {now.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, with a tolerance of"
            f" {MAX_CLOCK_SKEW // timedelta(minutes=1)} minutes; check the clock of the measuring"
            " machine and the offset of the time (default: UTC)"
        )
    return moment


def json_size(content: Mapping[str, Any], path: str) -> int:
    """Return the bytes of an object's JSON, at most what a row can store. Serializing takes a
    hundredth of the time of checking each part (``require_json``), which grows with these bytes."""
    try:
        size = len(json.dumps(content))
    except RecursionError:
        raise UserError(f"{path}: nested deeper than {_MAX_DEPTH}") from None
    require(size <= _MAX_JSON_BYTES, path, f"more than {_MAX_JSON_BYTES} bytes")
    return size


def require_json(content: Mapping[str, Any], path: str) -> None:
    """Check that each part can be stored. Call ``json_size`` first."""
    _check_plain(content, path, _MAX_DEPTH)


def is_flat_and_small(content: Mapping[Any, Any]) -> bool:
    """Whether it is a few short texts, numbers and truth values: nearly always, and then nothing in
    it needs a second check."""
    if len(content) > _MAX_FLAT_FIELDS:
        return False
    for name, part in content.items():
        if not is_plain_text(name, _MAX_FLAT_CHARS):
            return False
        if type(part) in _NUMBER_TYPES:
            if not -LARGEST <= part <= LARGEST:
                return False
        elif not (type(part) is bool or part is None or is_plain_text(part, _MAX_FLAT_CHARS)):
            return False
    return True


def is_plain_text(value: Any, max_chars: int) -> bool:
    """Whether it is a valid text of at most so many characters: a fast check."""
    return type(value) is str and len(value) <= max_chars and value.isascii() and "\0" not in value


def _check_plain(value: Any, path: str, levels_left: int) -> None:
    require(levels_left > 0, path, f"nested deeper than {_MAX_DEPTH}")
    if isinstance(value, Mapping):
        for name, part in value.items():
            as_text(name, path, 200)
            _check_plain(part, path, levels_left - 1)
    elif isinstance(value, list):
        for part in value:
            _check_plain(part, path, levels_left - 1)
    elif isinstance(value, str):
        as_text(value, path, _MAX_JSON_BYTES)
    elif isinstance(value, float):
        require(math.isfinite(value), path, "contains a number that is not finite")
    elif isinstance(value, int):
        require(abs(value) <= LARGEST, path, "contains a number that is too large")
