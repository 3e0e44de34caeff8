"""The compiler flags that a user may set: a closed list, since a flag can also write files."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from scheduler.errors import UserError

_ALLOWED = re.compile(
    r"""-O[0123sz]
    | -f(no-)?(fast-math|unroll-loops|vectorize|slp-vectorize|reciprocal-math|signed-zeros
               |associative-math|honor-nans|honor-infinities|strict-aliasing)
    | -ffp-contract=(on|off|fast|fast-honor-pragmas)
    | -f(no-)?gpu-flush-denormals-to-zero
    | -m(no-)?(cumode|unsafe-fp-atomics|tgsplit)
    | -mllvm=-amdgpu-[a-z0-9-]+(=[A-Za-z0-9_]+)?
    | -D[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.]*)?
    """,
    re.VERBOSE,
)
_DEVICE_ONLY = re.compile(r"-m(no-)?(cumode|unsafe-fp-atomics|tgsplit)$|-mllvm=|-f(no-)?gpu-")


@dataclass(frozen=True)
class Flags:
    """Flags in the order in which the compiler gets them. Raises ``UserError`` for others."""

    values: tuple[str, ...] = ("-O3",)

    def __post_init__(self) -> None:
        for value in self.values:
            if not _ALLOWED.fullmatch(value):
                raise UserError(
                    f"compiler flag {value!r} is not allowed; allowed are -O levels, floating-point"
                    " and unrolling options (-f...), -mcumode, -mllvm=-amdgpu-..., and -DNAME=value"
                )

    @property
    def host(self) -> tuple[str, ...]:
        """Return the flags that apply to host code."""
        return tuple(value for value in self.values if not _DEVICE_ONLY.match(value))


DEFAULT_FLAGS = Flags()


def parse_flags(text: str) -> Flags:
    """Parse flags as a person writes them, ``-O2 -ffast-math``; without an -O level, -O3 is
    prepended."""
    try:
        values = tuple(shlex.split(text))
    except ValueError as error:
        raise UserError(f"compiler flags {text!r} cannot be read: {error}") from None
    if not any(value.startswith("-O") for value in values):
        values = ("-O3", *values)
    return Flags(values)
