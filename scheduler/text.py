"""Escaping of untrusted text: one function for each kind of output.

Names, paths and code come from a model's file or from a bundle and may contain any character. They
are escaped for the output's syntax, and stay recognisable.
"""

from __future__ import annotations

import re

MAX_LINE = 1_000  # characters of a displayed line, such as an error or a log line
MAX_NAME = 200  # characters of a name within a line
MAX_COMMENT = 20_000  # characters of a comment line


def shorten(text: str, max_chars: int = MAX_NAME) -> str:
    """Return the text; if longer than ``max_chars`` characters, its beginning and its end."""
    if len(text) <= max_chars:
        return text
    tail_chars = max_chars // 4
    return f"{text[: max_chars - tail_chars - 3]} … {text[-tail_chars:]}"


def one_line(text: str, max_chars: int = MAX_LINE) -> str:
    """Escape for errors, logs and tables: one line of at most ``max_chars`` characters.

    Unprintable characters (line ends, terminal escapes, direction marks) are escaped as in Python.
    """
    shortened = shorten(text, max_chars)
    if shortened.isprintable():
        return shortened
    return shorten("".join(map(_escape_char, shortened)), max_chars)


def _escape_char(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")


def escape_log(text: str) -> str:
    """Escape the log of another program: unprintable characters except line ends and tabs."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(char if char in "\n\t" else _escape_char(char) for char in text)


def escape_comment(text: str, max_chars: int = MAX_COMMENT) -> str:
    r"""Escape for a comment line in C++ or Python, so that it cannot end or continue the comment.

    The result has no line end, no ``*/``, no trigraph, and no backslash at the end.
    """
    escaped = one_line(text, max_chars).replace("*/", "* /")
    escaped = re.sub(r"\?(?=\?)", "? ", escaped)
    return f"{escaped}." if escaped.rstrip().endswith("\\") else escaped


def escape_docstring(text: str, max_chars: int = MAX_LINE) -> str:
    """Escape for a line of a Python docstring: as a comment, without quotes and backslashes."""
    return re.sub(r'["\\]', "'", escape_comment(text, max_chars))


def to_identifier(text: str) -> str:
    """Replace every character but ASCII letters, digits and ``_`` by ``_``.

    The result may begin with a digit or be empty, and different texts may give the same result.
    """
    return re.sub(r"[^0-9A-Za-z_]", "_", text)
