"""What is taken of a dump's text: rows and sequences that Kiln has, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codegen_app.site.backups import load
from scheduler.errors import UserError

TABLES = {"graph": frozenset({"id", "order"}), "node": frozenset({"id"})}
TEXT = [
    b"--\n",
    b"\\restrict abc123\n",
    b"SET statement_timeout = 0;\n",
    b"SET client_encoding = 'UTF8';\n",
    b"SELECT pg_catalog.set_config('search_path', '', false);\n",
    b"-- Data for Name: graph; Type: TABLE DATA; Schema: public; Owner: postgres\n",
    b'COPY public.graph (id, "order") FROM stdin;\n',
    b"1\t2\n",
    b"\\\\.\t3\n",
    b"\\.\n",
    b"\n",
    b"SELECT pg_catalog.setval('public.graph_id_seq', 25, true);\n",
    b"COPY public.node (id) FROM stdin;\n",
    b"\\.\n",
]
HOSTILE = [
    b"COPY public.graph FROM PROGRAM 'touch /tmp/x';\n",
    b"COPY public.graph (id, \"order\") FROM PROGRAM 'touch /tmp/x';\n",
    b'COPY public.graph (id, "order") FROM stdin WHERE (SELECT true);\n',
    b"COPY public.graph (id) FROM stdin;\n",
    b"COPY public.graph (id, id) FROM stdin;\n",
    b"COPY public.other (id) FROM stdin;\n",
    b"COPY pg_catalog.pg_authid (oid) FROM stdin;\n",
    b"CREATE FUNCTION f() RETURNS int;\n",
    b"SELECT pg_catalog.setval('public.graph_id_seq', 25, true); DROP TABLE graph;\n",
    b"SELECT pg_catalog.lo_create('1');\n",
    b"SET client_encoding = 'LATIN1';\n",
    b"SET a = b; DROP TABLE graph;\n",
    b"\\! touch /tmp/x\n",
    b"-- a comment that is cut off",
    b"\x00\n",
]


def read(text: list[bytes]) -> list[object]:
    return [
        (part.table, part.columns, list(part.lines)) if isinstance(part, load.TableRows) else part
        for part in load.parse_dump(text, TABLES)
    ]


def test_rows_and_sequences_are_taken_as_they_are() -> None:
    assert read(TEXT) == [
        ("graph", ("id", "order"), [b"1\t2\n", b"\\\\.\t3\n"]),
        load.SequenceValue("graph_id_seq", 25, True),
        ("node", ("id",), []),
    ]


@pytest.mark.parametrize("line", HOSTILE)
def test_any_other_statement_is_refused(line: bytes) -> None:
    """Before the rows, and behind them: whoever writes an archive decides where rows end."""
    for at in (0, 10):
        with pytest.raises(UserError) as caught:
            read([*TEXT[:at], line, *TEXT[at:]])
        assert "\n" not in str(caught.value)


def test_rows_without_an_end_are_refused() -> None:
    with pytest.raises(UserError, match="cut off"):
        read(TEXT[:8])


@given(st.lists(st.sampled_from([*TEXT, *HOSTILE]) | st.binary(max_size=40), max_size=12))
@example(TEXT)
def test_no_text_names_a_table_or_column_that_kiln_has_not(text: list[bytes]) -> None:
    try:
        for part in load.parse_dump(text, TABLES):
            if isinstance(part, load.TableRows):
                assert set(part.columns) == TABLES[part.table]
                assert b"\\.\n" not in list(part.lines)
            else:
                assert part.name.isidentifier()
    except UserError as error:
        assert str(error).isprintable()
