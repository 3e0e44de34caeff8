"""Limits for one model: on the content of its file, and on the work that it causes.

Files are untrusted. Their content is checked where it is read; the work that follows is limited by
counting steps (``fuel.py``), so that every machine refuses the same file at the same node.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FuelLimit:
    """Steps that a stage may take: ``base`` plus ``per_part`` for each part of the graph, so that
    time grows at most linearly; never more than ``cap``."""

    base: int
    per_part: int
    cap: int = 20_000_000

    def for_parts(self, parts: int) -> int:
        return min(self.base + self.per_part * parts, self.cap)


# ---- the file (frontends)
MAX_FILE_BYTES = 64 << 30  # the file may contain weights, which are not read
MAX_DIRECTORY_BYTES = 32 << 20  # the zip's central directory
MAX_JSON_BYTES = 256 << 20
MAX_JSON_TOKENS = 12_000_000  # objects, lists and commas: what a parsed document costs in memory
MAX_RATIO = 400  # unpacked size / packed size, for members above ``RATIO_FREE_BYTES``
RATIO_FREE_BYTES = 1 << 20

# ---- the graph (frontends, ir/check.py)
MAX_NODES = 200_000
MAX_VALUES = 400_000
MAX_SYMBOLS = 256
MAX_GUARDS = 4096  # that an export lists
MAX_RANK = 64
# Degree of a tensor's number of elements in one size. SymPy compares polynomials by isolating
# their roots, which takes a second at degree 6 and four times as long at degree 8.
MAX_SIZE_DEGREE = 6
MAX_GRAPH_NESTING = 8  # graphs within graphs
MAX_ARGUMENTS = 1024  # of one node, elements of lists included
MAX_OUTPUTS = 1024  # of one node
MAX_NAME = 1000  # characters of a value's or a node's name
MAX_SYMBOL_NAME = 200
MAX_STRING = 4096  # characters of a string argument
MAX_FRAMES = 64  # in one node's stack trace
MAX_ORIGIN_TEXT = 20_000  # characters of a node's stack trace or module stack
INT64_END = 1 << 63  # sizes, strides, elements and bytes of a tensor are below it

# ---- one expression (ir/index/parser.py), and its expanded form (ir/index/polynomial.py)
MAX_EXPRESSION_TEXT = 20_000  # characters
MAX_EXPRESSION_TOKENS = 2_000  # operators, numbers and names
MAX_EXPRESSION_DEPTH = 100
MAX_BITS = 256  # of an integer in an expression: sizes have 63
MAX_EXPONENT = 16
MAX_BRANCHES = 32  # arguments of one Max or Min
MAX_TERMS = 512  # of a polynomial
MAX_DEGREE = 64  # factors of one term: a size for each dimension at MAX_RANK
MAX_COEFFICIENT_BITS = 4096  # the product of 64 sizes of 63 bits
MAX_EXPRESSIONS_TEXT = 4 << 20  # characters of all distinct expressions of one file
MAX_VIEWS = 64  # views in a chain; then the value is stored

# ---- the reference (ir/reference): ops whose results are larger than their operands
MAX_RESULT_ELEMENTS = 1 << 28  # elements of a result whose size is an argument

# ---- higher-order ops (lowering/higher_order.py, ir/reference/higher_order.py)
MAX_UNROLLED_STEPS = 64  # of a scan that is unrolled into kernels
MAX_RECURRENT_STEPS = 256  # of a recurrent op, over all layers and directions
MAX_UNROLLED_NODES = 2_000  # steps times nodes of its body
MAX_ITERATIONS = 100_000  # of a loop that kernels or the reference run

# ---- work, in steps (fuel.py): 10 to 100 times what the sample graphs take
PARSE_FUEL = FuelLimit(300_000, 500)  # for each node
LOWERING_FUEL = FuelLimit(300_000, 2_000)  # for each node
SCHEDULING_FUEL = FuelLimit(300_000, 2_000)  # for each operation
RENDERING_FUEL = 300_000  # all candidates of one kernel
PROBLEM_FUEL = 300_000  # of one kernel
