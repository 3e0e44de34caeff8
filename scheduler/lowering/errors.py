"""Reasons why a node has no kernel, and errors of lowering."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scheduler.errors import UserError
from scheduler.fuel import LimitError
from scheduler.ir.graph import Node
from scheduler.ir.ops import NoKernel

_RULE_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)


class Unsupported(Exception):  # noqa: N818 - an expected answer, not an error
    """Raised by an op's rule for arguments that it does not cover; the node becomes an extern."""


def node_location(node: Node) -> str:
    """A node and its origin for messages: ``add_1 (aten.add.Tensor, model.h.0, f.py:3)``."""
    parts = [node.target]
    if node.origin.module_path:
        parts.append(node.origin.module_path)
    if node.origin.frames:
        frame = node.origin.frames[-1]
        parts.append(f"{frame.file}:{frame.line}")
    return f"{node.name} ({', '.join(parts)})"


class ContradictionError(UserError):
    """The graph's result of a node contradicts the node's arguments."""


@contextmanager
def error_context(location: str) -> Iterator[None]:
    """Add a location to errors raised in the context.

    A rule is written for the arguments and shapes that torch gives its op. A file may contain
    others; any error that the rule then raises is reported as a contradiction in the file.
    """
    try:
        yield
    except LimitError as error:
        raise error.with_location(location) from error
    except ContradictionError as error:
        raise UserError(f"{location}: {error}") from error
    except _RULE_ERRORS as error:
        detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise UserError(
            f"{location}: its arguments and shapes are inconsistent ({detail})"
        ) from error


FACTORS = NoKernel("matrix factorizations are computed by LAPACK")
SPECTRA = NoKernel("eigenvalues and singular values are computed by LAPACK")
DATA_DEPENDENT_SIZE = NoKernel("the size of its result depends on data")
MATRIX_EXPONENTIALS = NoKernel("matrix exponentials are computed on the host")
