"""Pages that are compressed once are the files that gzip makes of them."""

from __future__ import annotations

import gzip
import os

from hypothesis import given
from hypothesis import strategies as st

from codegen_app.web.pagecache.compressed import Part, join_gzip, join_plain

TEXTS = st.lists(st.tuples(st.binary(max_size=200), st.binary(max_size=3000)), max_size=5)


@given(st.binary(max_size=3000), TEXTS)
def test_parts_and_what_comes_between_are_one_file(
    first: bytes, rest: list[tuple[bytes, bytes]]
) -> None:
    parts = [Part.of(first), *(Part.of(part) for _, part in rest)]
    between = [value for value, _ in rest]
    whole = first + b"".join(value + part for value, part in rest)
    assert join_plain(parts, between) == whole
    assert gzip.decompress(join_gzip(parts, between)) == whole


def test_a_large_page_is_one_file() -> None:
    text = os.urandom(300_000) + b"line\n" * 100_000
    parts = [Part.of(text), Part.of(text)]
    assert gzip.decompress(join_gzip(parts, [b"x" * 65_535])) == text + b"x" * 65_535 + text
