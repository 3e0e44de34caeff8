"""Random numbers of a graph: the ops that draw them, and their streams (docs/random.md).

Element number n of an op, in row-major order, draws from Philox 4x32-10 with the counter
(n mod 2^32, n / 2^32, 0, 0) and the key (seed, stream): the seed is the symbol ``seed`` of the
graph, the stream comes from the name of the op's first result.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping

from scheduler.ir.check import subgraphs
from scheduler.ir.graph import Node

#: The symbol of a graph that draws random numbers: bound like a size; default 0.
SEED = "seed"
SEED_END = 1 << 31

#: torch's generator as a function: in files exported from an NVIDIA GPU.
PHILOX_RAND = "rngprims.philox_rand.default"
#: The symbol of a graph that calls it: resident blocks of 256 threads on torch's GPU.
BLOCKS = "rng_blocks"
#: The value for an H100 or H200: 132 multiprocessors of 2048 threads.
DEFAULT_BLOCKS = 132 * 2048 // 256
BLOCKS_END = 1 << 20

#: Ops that always draw.
RANDOM_OPS = frozenset(
    [
        *("rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm"),
        *("bernoulli", "uniform", "normal", "normal_functional", "exponential", "log_normal"),
        *("cauchy", "geometric", "multinomial", "poisson"),
    ]
)
#: Ops that draw in training: the name of the flag (or of the probability, 0 if not in training),
#: its position, and its default.
TRAINING_RANDOM_OPS: Mapping[str, tuple[str, int, float]] = {
    "dropout": ("train", 2, True),
    "alpha_dropout": ("train", 2, True),
    "feature_dropout": ("train", 2, True),
    "feature_alpha_dropout": ("train", 2, True),
    "native_dropout": ("train", 2, True),
    "rrelu": ("training", 3, False),
    "scaled_dot_product_attention": ("dropout_p", 4, 0.0),
}


def may_draw_random(target: str) -> bool:
    """Whether a node of this target may draw random numbers: ``aten.rand.default``."""
    name = _aten_name(target)
    return name in RANDOM_OPS or name in TRAINING_RANDOM_OPS


def draws_random(node: Node) -> bool:
    """Whether a node or one of its subgraphs draws random numbers; an op with a training flag
    draws in training only."""
    name = _aten_name(node.target)
    if name not in TRAINING_RANDOM_OPS:
        return name in RANDOM_OPS or any(
            draws_random(inner) for part in subgraphs(node) for inner in part.nodes
        )
    flag, position, default = TRAINING_RANDOM_OPS[name]
    flag_value = (
        node.args[position] if len(node.args) > position else node.kwargs.get(flag, default)
    )
    return flag_value is None or flag_value != 0


def _aten_name(target: str) -> str:
    """Return the name of a target's aten op, without the in-place suffix; else empty."""
    namespace, _, rest = target.partition(".")
    return rest.partition(".")[0].removesuffix("_") if namespace == "aten" else ""


def has_target(node: Node, target: str) -> bool:
    """Whether a node, or one in its subgraphs, has this target."""
    inner_nodes = (inner for part in subgraphs(node) for inner in part.nodes)
    return node.target == target or any(has_target(inner, target) for inner in inner_nodes)


def default_bindings(names: Iterable[str]) -> dict[str, int]:
    """Return the default values of the symbols that random numbers need."""
    defaults = {SEED: 0, BLOCKS: DEFAULT_BLOCKS}
    return {name: defaults[name] for name in names if name in defaults}


def stream_id(name: str) -> int:
    """Return the stream of the op whose first result has this name: 31 bits of its CRC-32."""
    return zlib.crc32(name.encode()) >> 1
