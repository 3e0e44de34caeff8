"""Escaping of untrusted text: one function for each kind of output.

Names, paths and code come from a model's file or from a bundle and may contain any character. They
are escaped for the output's syntax, and stay recognisable.
"""

from __future__ import annotations

import re

MAX_LINE = 1_000  # characters of a displayed line, such as an error or a log line
MAX_NAME = 200  # characters of a name within a line
MAX_COMMENT = 20_000  # characters of a comment line


def shorten(text: str, most: int = MAX_NAME) -> str:
    """Return the text; if longer than ``most`` characters, its beginning and its end."""
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end - 3]} … {text[-end:]}"


def one_line(text: str, most: int = MAX_LINE) -> str:
    """Escape for errors, logs and tables: one line of at most ``most`` characters.

    Unprintable characters (line ends, terminal escapes, direction marks) are escaped as in Python.
    """
    kept = shorten(text, most)
    if kept.isprintable():
        return kept
    return shorten("".join(map(_escape_char, kept)), most)


def _escape_char(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")


def escape_log(text: str) -> str:
    """Escape the log of another program: unprintable characters except line ends and tabs."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(char if char in "\n\t" else _escape_char(char) for char in text)


def escape_comment(text: str, most: int = MAX_COMMENT) -> str:
    r"""Escape for a comment line in C++ or Python, so that it cannot end or continue the comment.

    The result has no line end, no ``*/``, no trigraph, and no backslash at the end.
    """
    kept = one_line(text, most).replace("*/", "* /")
    kept = re.sub(r"\?(?=\?)", "? ", kept)
    return f"{kept}." if kept.rstrip().endswith("\\") else kept


def escape_docstring(text: str, most: int = MAX_LINE) -> str:
    """Escape for a line of a Python docstring: as a comment, without quotes and backslashes."""
    return re.sub(r'["\\]', "'", escape_comment(text, most))


def to_identifier(text: str) -> str:
    """Replace every character but ASCII letters, digits and ``_`` by ``_``.

    The result may begin with a digit or be empty, and different texts may give the same result.
    """
    return re.sub(r"[^0-9A-Za-z_]", "_", text)
