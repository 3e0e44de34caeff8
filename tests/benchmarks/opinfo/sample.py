"""The sample that the tests take of the database, always the same.

Of every op one use: of the k-th op in the database's order the k-th of its types (counted on from
the first again after the last), and of its samples of that type likewise the k-th.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.opinfo.database import Use, database, dtypes_of, uses


def stated_sample(shard: int = 0, shards: int = 1) -> Iterator[Use]:
    """The uses of every ``shards``-th op; an op without a type of ours, or without samples, has
    none."""
    for place, op in enumerate(database()):
        if place % shards != shard:
            continue
        dtypes = dtypes_of(op)
        found = list(uses(op, dtypes[place % len(dtypes)])) if dtypes else []
        if found:
            yield found[place % len(found)]
