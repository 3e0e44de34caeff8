"""Text of others where it is written: one function for each kind of place.

Names, paths and code come from a model's file or from a bundle and may hold any character. Here
they become what the place can hold; where they are shown they stay recognisable.
"""

from __future__ import annotations

import re

MAX_LINE = 1_000  # characters of a line that is shown: an error's, a log's
MAX_NAME = 200  # characters of a name inside a line
MAX_COMMENT = 20_000  # characters of a line of a comment


def shorten(text: str, most: int = MAX_NAME) -> str:
    """The text itself, or of one of more than ``most`` characters its beginning and its end."""
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end - 3]} … {text[-end:]}"


def one_line(text: str, most: int = MAX_LINE) -> str:
    """For errors, logs and tables: a line of at most ``most`` characters, in which everything that
    does not print (line ends, terminals' commands, marks that turn the direction) is spelled as
    in Python."""
    kept = shorten(text, most)
    if kept.isprintable():
        return kept
    return shorten("".join(map(_escape_char, kept)), most)


def _escape_char(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")


def escape_log(text: str) -> str:
    """For logs of other programs: line ends and tabs stay, what else does not print is spelled."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(char if char in "\n\t" else _escape_char(char) for char in text)


def escape_comment(text: str, most: int = MAX_COMMENT) -> str:
    r"""For a line of a comment, in C++ or Python: nothing in it ends the comment or continues it.

    That is no line end, no ``*/``, no trigraph, and no backslash at the end.
    """
    kept = one_line(text, most).replace("*/", "* /")
    kept = re.sub(r"\?(?=\?)", "? ", kept)
    return f"{kept}." if kept.rstrip().endswith("\\") else kept


def escape_docstring(text: str, most: int = MAX_LINE) -> str:
    """For a line inside Python's triple quotes: a comment's without quotes and backslashes."""
    return re.sub(r'["\\]', "'", escape_comment(text, most))


def to_identifier(text: str) -> str:
    """What a C or Python identifier can hold of it: ASCII letters, digits and ``_``, which may
    begin with a digit or be nothing at all. Several texts may have the same."""
    return re.sub(r"[^0-9A-Za-z_]", "_", text)
