"""Random numbers of a graph: which ops draw them, and from which stream (docs/random.md).

An op's element with the number n in row-major order draws from Philox 4x32-10 with the counter
(n mod 2^32, n / 2^32, 0, 0) and the key (seed, stream): the seed is the symbol ``seed`` of the
graph, the stream comes from the name of the op's first result.
"""

from __future__ import annotations

import zlib

#: The symbol of a graph that draws random numbers: bound like a size, 0 where nothing is given.
SEED = "seed"
SEED_END = 1 << 31

#: Ops that always draw; those with a flag for training do where it is set.
DRAWING = frozenset(
    [
        *("rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm"),
        *("bernoulli", "uniform", "normal", "normal_functional", "exponential", "log_normal"),
        *("cauchy", "geometric", "multinomial"),
    ]
)
IN_TRAINING = frozenset(["dropout", "native_dropout", "rrelu"])


def may_draw(target: str) -> bool:
    """Whether a node of this target may draw random numbers: ``aten.rand.default``."""
    namespace, _, rest = target.partition(".")
    name = rest.partition(".")[0].removesuffix("_")
    return namespace == "aten" and (name in DRAWING or name in IN_TRAINING)


def stream_of(name: str) -> int:
    """The stream of the op whose first result has this name: 31 bits of its CRC-32."""
    return zlib.crc32(name.encode()) >> 1
