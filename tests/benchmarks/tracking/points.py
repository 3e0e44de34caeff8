"""Points as PostgreSQL's binary COPY takes them: whole arrays at once, since ten million rows that
are written one by one take longer than all that is measured afterwards."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta

import numpy as np

from tests.benchmarks.tracking.content import NOISE, SAMPLES, Content, Visit

COLUMNS = (
    *("id", "series_id", "at", "measured_at", "value", "low", "high", "n", "samples"),
    *("revision_id", "conditions_id", "source", "batch_id"),
)
SIGNATURE = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
END = struct.pack(">h", -1)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_FLOAT8 = 701  # its oid in pg_type
_LATER = timedelta(minutes=20)  # from a revision to its measurement
_FLOATS = ("value", "low", "high")
_INTEGERS = ("n", "series_id", "revision_id", "conditions_id", "batch_id")
_TYPES = dict.fromkeys(_FLOATS, ">f8") | dict.fromkeys(_INTEGERS, ">i4") | {"source": "S3"}
_ROW = np.dtype(
    [
        ("columns", ">i2"),
        *(
            part
            for name in COLUMNS
            if name != "samples"
            for part in ((f"{name} length", ">i4"), (name, _TYPES.get(name, ">i8")))
        ),
        # Last in the file: columns are named in that order to COPY (``ORDER``).
        ("samples length", ">i4"),
        ("samples head", ">i4", (5,)),
        ("samples", [("length", ">i4"), ("value", ">f8")], (SAMPLES,)),
    ]
)
ORDER = (*(name for name in COLUMNS if name != "samples"), "samples")
COPY = f"COPY codegen_app_datum ({', '.join(ORDER)}) FROM STDIN WITH (FORMAT binary)"


def rows(content: Content, visit: Visit, first_id: int, first_conditions: int) -> bytes:
    """The points of a suite at a revision; ids go up from ``first_id``."""
    suite = content.suites[visit.suite]
    made = np.zeros(suite.n_series, _ROW)
    made["columns"] = len(ORDER)
    for name in ORDER[:-1]:
        made[f"{name} length"] = _ROW[name].itemsize
    numbers = np.arange(suite.n_series)
    samples = suite.samples(visit.revision, visit.suite)
    made["id"] = first_id + numbers
    made["series_id"] = 1 + suite.first_series + numbers
    made["at"] = _microseconds(visit.at)
    made["measured_at"] = _microseconds(visit.at + _LATER)
    made["value"] = np.median(samples, axis=1)
    half = made["value"] * NOISE * 2 / np.sqrt(SAMPLES)
    made["low"], made["high"] = made["value"] - half, made["value"] + half
    made["n"] = SAMPLES
    made["revision_id"] = made["batch_id"] = 1 + visit.number
    epochs = suite.epochs[visit.revision]
    made["conditions_id"] = 1 + first_conditions + suite.first_conditions[:-1] + epochs
    made["source"] = b"api"
    made["samples length"] = 20 + SAMPLES * 12
    made["samples head"] = (1, 0, _FLOAT8, SAMPLES, 1)
    made["samples"]["length"] = 8
    made["samples"]["value"] = samples
    return made.tobytes()


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)
