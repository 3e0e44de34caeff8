"""How much one model may ask for: every limit on what a file holds, and on the work it makes.

A file is anybody's. What it says is bounded where it is read; what follows from it is bounded by
counting steps (``steps.py``), so that the same file is refused on every machine, at the same node.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FuelLimit:
    """Steps that a stage may take: some for any graph, and more for each of its parts, so that
    its time grows with the graph and no faster; and never more than ``most``."""

    base: int
    per_part: int
    cap: int = 20_000_000

    def for_parts(self, parts: int) -> int:
        return min(self.base + self.per_part * parts, self.cap)


# ---- the file (frontends)
MAX_FILE_BYTES = 64 << 30  # weights may be in the file; they are not read
MAX_DIRECTORY_BYTES = 32 << 20  # of the zip's table of members
MAX_JSON_BYTES = 256 << 20
MAX_JSON_TOKENS = 12_000_000  # objects, lists and commas: what a parsed document costs in memory
MAX_RATIO = 400  # unpacked to packed, for members above ``RATIO_FREE_BYTES``
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
MAX_GRAPH_NESTING = 8  # of graphs in graphs
MAX_ARGUMENTS = 1024  # of one node, the parts of lists among them
MAX_OUTPUTS = 1024  # of one node
MAX_NAME = 1000  # characters of a value's or a node's name
MAX_SYMBOL_NAME = 200
MAX_STRING = 4096  # characters of a text among the arguments
MAX_FRAMES = 64  # of one node's stack trace
MAX_ORIGIN_TEXT = 20_000  # characters of a node's stack trace or module stack
INT64_END = 1 << 63  # sizes, strides, elements and bytes of a tensor are below it

# ---- one expression (ir/index/parser.py), and its parts multiplied out (ir/index/polynomial.py)
MAX_EXPRESSION_TEXT = 20_000  # characters
MAX_EXPRESSION_TOKENS = 2_000  # operators, numbers and names
MAX_EXPRESSION_DEPTH = 100
MAX_BITS = 256  # of an integer in it: sizes have 63
MAX_EXPONENT = 16
MAX_BRANCHES = 32  # arguments of one Max or Min
MAX_TERMS = 512  # of a polynomial
MAX_DEGREE = 64  # factors of one of its terms: a size for each dimension of the largest rank
MAX_COEFFICIENT_BITS = 4096  # as many sizes of 63 bits multiplied
MAX_EXPRESSIONS_TEXT = 4 << 20  # characters of all different expressions of one file
MAX_VIEWS = 64  # of views on the way to a value; then it is stored

# ---- the reference (ir/reference): what an op makes of few elements
MAX_RESULT_ELEMENTS = 1 << 28  # elements of a result that an argument's number decides

# ---- higher-order ops (lowering/higher_order.py, ir/reference/higher_order.py)
MAX_UNROLLED_STEPS = 64  # of a scan that becomes kernels, one step after the other
MAX_RECURRENT_STEPS = 256  # the same of a recurrent layer, all its layers and directions together
MAX_UNROLLED_NODES = 2_000  # steps times nodes of its body
MAX_ITERATIONS = 100_000  # steps of any loop that is run, by kernels or the reference

# ---- work, in steps (steps.py): ten to a hundred times what the samples take
PARSE_FUEL = FuelLimit(300_000, 500)  # for each node
LOWERING_FUEL = FuelLimit(300_000, 2_000)  # for each node
SCHEDULING_FUEL = FuelLimit(300_000, 2_000)  # for each operation
RENDERING_FUEL = 300_000  # all candidates of one kernel
PROBLEM_FUEL = 300_000  # of one kernel
