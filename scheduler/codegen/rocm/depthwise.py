"""The depthwise convolution template: each channel separately, no matrix product.

A thread has a few channels of a vertical strip of results, so that an input row is used for several
of them; the filters of a block's channels are in LDS. Lanes run along channels if these are
contiguous, along image columns if those are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import sympy

from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.contraction.addressing import Bound, analyse_addressing, has_32_bit_offsets
from scheduler.codegen.contraction.indices import address
from scheduler.codegen.kernel import Launch
from scheduler.codegen.legality import illegal
from scheduler.codegen.names import PLACEHOLDER
from scheduler.codegen.rocm.gemm.interface import GemmInterface, bound_test
from scheduler.codegen.rocm.gemm.problem import vector_widths
from scheduler.codegen.rocm.jinja_templates import kernel_template
from scheduler.codegen.rocm.template import ROCmTemplate
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import Affine
from scheduler.ir.index.facts import is_multiple
from scheduler.ir.index.functions import evaluate, symbol
from scheduler.ir.index.ranges import Ranges, loop_ranges
from scheduler.ir.index.simplify import simplify
from scheduler.ir.operations import Axis, Lowered, Store
from scheduler.targets import Target

# (threads, rows per thread); rows beyond the image's are computed and discarded.
_SHAPES = ((256, 8), (256, 4), (256, 2), (256, 1), (128, 8), (128, 4), (128, 2), (64, 4), (64, 1))
_LANES = (8, 16, 32)  # of neighbouring channels
_MAX_RESULTS = 32  # of a thread, which also holds a column of taps and a row
_MAX_LDS_BYTES = 32768
_FULL_DEVICE_THREADS = 1 << 16
_FUNCTION_NAME = f"{PLACEHOLDER}_strips"
_ONE = sympy.Integer(1)


@dataclass(frozen=True)
class _ImageAxis:
    """A dimension of the image: results and taps step by multiples of ``unit`` elements.

    ``bound`` is the test of the input's edge, None if no window exceeds it; ``scale`` is the number
    of its positions per unit. A window has ``taps``, which lowering determined to be a number.
    """

    results: Axis
    taps: int
    unit: Expr
    step: int
    tap: int
    bound: Bound | None
    scale: int


class DepthwiseTemplate(ROCmTemplate):
    """One contraction over (channel; image, y, x; taps) that lowering keeps in this form."""

    name: ClassVar[str] = "depthwise"

    def __init__(
        self,
        node: SchedulerNode,
        lowered: Lowered,
        targets: tuple[Target, ...],
        comment: MetadataComment | None = None,
    ) -> None:
        super().__init__(node, lowered, targets, comment)
        (self._member,) = node.contractions
        self._ranges = Ranges.from_symbols(lowered.graph.symbols)
        self._hints = hint_bindings(lowered.graph.symbols)
        self.interface = GemmInterface(
            (self._member,), lowered.buffers, lowered.graph.symbols, self.marks
        )
        form, weights = self.interface.a.form, self.interface.members[0].b.form
        addressing = analyse_addressing(self.interface.a, self._ranges)
        if form is None or weights is None or addressing is None:
            raise TypeError(f"{node.name} does not read a window of a tensor")
        self._form, self._bounds = form, addressing.bounds
        self._images, *rows, x = self._member.m
        (self._channel,) = self._member.batch
        taps_y, taps_x = self._member.k[0], self._member.k[-1]
        self._x = self._axis(x, taps_x)
        self._y = y = self._axis(rows[0], taps_y) if rows else None
        self._narrow = has_32_bit_offsets(self.interface.a, self._ranges)
        # The arguments in addition to those of a product.
        zero = sympy.Integer(0)
        arguments = {
            "images": self._images.size,
            "x_at": form.rest,
            "x_channel": form.at(self._channel.var),
            "x_image": form.at(self._images.var),
            "x_y": form.at(y.results.var) if y else zero,
            "x_x": form.at(x.var),
            "unit_y": y.unit if y else zero,
            "unit_x": form.at(taps_x.var),
            "w_at": weights.rest,
            "w_channel": weights.at(self._channel.var),
            "w_y": weights.at(taps_y.var) if y else zero,
            "w_x": weights.at(taps_x.var),
        }
        kernel = self.interface.kernel
        for name, value in arguments.items():
            kernel.add_scalar(name, value, "i32" if name == "images" else "i64")
        self._values = kernel.call_kernel(PLACEHOLDER, node.nodes).args

    def _axis(self, results: Axis, taps: Axis) -> _ImageAxis:
        result_stride, tap_stride = self._form.at(results.var), self._form.at(taps.var)
        step, tap, unit = 1, 1, result_stride
        if taps.size != 1 and results.size == 1:
            unit = tap_stride
        elif taps.size != 1:
            ratio = sympy.Rational(sympy.cancel(result_stride / tap_stride))
            step, tap = int(ratio.p), int(ratio.q)
            unit = simplify(result_stride / step)
        scale, printed_bound = 1, None
        for bound, text in zip(self._bounds, self.interface.bounds(0), strict=True):
            symbols = bound.row.free_symbols | bound.step.free_symbols
            if printed_bound is None and not symbols.isdisjoint({results.var, taps.var}):
                printed_bound = text
                result_positions = bound.row.coeff(results.var) if results.size != 1 else 0
                scale = int(bound.step.coeff(taps.var) or 1) // tap
                if result_positions:
                    scale = int(result_positions) // step
        return _ImageAxis(results, int(taps.size), unit, step, tap, printed_bound, scale)

    # ---- configurations

    def _obstacle(self, width: int) -> str:
        """Return why ``width`` channels cannot be read at once, or "" if they can."""
        if width == 1:
            return ""
        if self._form.at(self._channel.var) != 1:
            return "the channels of X are not contiguous"
        for step in (self._channel.size, *self._other_steps(self._form)):
            if not is_multiple(step, width):
                return (
                    f"X has a channel count, stride or offset of {step}, which is not a multiple of"
                    f" {width}"
                )
        return ""

    def _other_steps(self, form: Affine) -> Iterator[Expr]:
        """Yield the offset of a form, and all strides but the channel's."""
        yield form.rest
        yield from (step for var, step in form.coefficients.items() if var != self._channel.var)

    def configs(self) -> Sequence[Config]:
        return [
            {"THREADS": threads, "ROWS": rows, "LANES_C": lanes, "VECTOR": width}
            for width in vector_widths(self.interface.element)
            for lanes in ((1, *_LANES) if width == 1 else _LANES)
            for threads, rows in _SHAPES
        ]

    def reject(self, config: Config) -> Rejected | None:
        rows, lanes, width = (int(config[name]) for name in ("ROWS", "LANES_C", "VECTOR"))
        obstacle = self._obstacle(width)
        if obstacle:
            return illegal(f"vectors of {width} channels: {obstacle}")
        if rows > 1 and self._y is None:
            return illegal("one-dimensional results have only one row")
        if rows * width > _MAX_RESULTS:
            return illegal(f"{rows * width} results per thread exceed the limit of {_MAX_RESULTS}")
        if self._lds_bytes(lanes, width) > _MAX_LDS_BYTES:
            return illegal(
                f"filters of {lanes * width} channels exceed the limit of {_MAX_LDS_BYTES} bytes"
            )
        return None

    def default_config(self) -> Config:
        """Return lanes along the contiguous axis, and the rows that read least per result."""
        contiguous = self._form.at(self._channel.var) == 1 and self._channel.size != 1
        width = next(w for w in vector_widths(self.interface.element) if not self._obstacle(w))
        lanes = 1
        if contiguous:
            lanes = _LANES[-1] if width == 1 else _LANES[0]
        valid = [
            config
            for config in self.configs()
            if (config["LANES_C"], config["VECTOR"], config["THREADS"]) == (lanes, width, 256)
            and self.reject(config) is None
        ]
        y = self._y
        if y is None:
            return valid[0]
        height = evaluate(y.results.size, self._hints)
        columns = evaluate(
            self._x.results.size * self._images.size * self._channel.size, self._hints
        )

        def read_cost(config: Config) -> float:
            """Return rows read and written per result; more if too few threads fill a device."""
            rows = int(config["ROWS"])
            strips = -(-height // rows)
            rows_moved = strips * ((rows - 1) * y.step + (y.taps - 1) * y.tap + 1 + rows)
            threads = columns * strips // width
            return rows_moved / max(height, 1) * max(1.0, _FULL_DEVICE_THREADS / max(threads, 1))

        return min(valid, key=read_cost)

    # ---- source

    def _lds_bytes(self, lanes: int, width: int) -> int:
        taps = int(sympy.Mul(*(axis.size for axis in self._member.k)))
        return taps * (lanes + 1) * width * self.interface.element.itemsize

    def render(self, config: Config) -> RenderedTemplate:
        text = kernel_template(self.name).render(self._context(config))
        constants = "\n".join(f"constexpr int {name} = {value};" for name, value in config.items())
        source, origins = self.marks.finish(text.replace("CONFIGURATION", constants, 1))
        threads, rows, lanes, vector = (int(value) for value in config.values())
        names = tuple(arg.name for arg in self.interface.kernel.args)
        height, width = (symbol("m_size1"), "m_size2") if self._y else (_ONE, "m_size1")
        strips = symbol("images") * ceil_div(height, rows) * symbol(width)
        blocks = ceil_div(strips, threads // lanes) * ceil_div(symbol("batches"), lanes * vector)
        launch = Launch(
            _FUNCTION_NAME,
            (blocks, _ONE, _ONE),
            (threads, 1, 1),
            self._lds_bytes(lanes, vector),
            names,
        )
        args = self.interface.kernel.args
        return RenderedTemplate(source, args, self._values, (launch,), sympy.Integer(0), origins)

    def _context(self, config: Config) -> dict[str, Any]:
        interface, kernel, y = self.interface, self.interface.kernel, self._y
        height, width = ("m_size1", "m_size2") if y else ("1", "m_size1")
        parameters, names = kernel.parameters(), ", ".join(arg.name for arg in kernel.args)
        results, stores = interface.results(0)
        offset, scale = ("uint32_t", " * uint32_t(sizeof(T))") if self._narrow else ("int64_t", "")
        indices = {"channel": "channel", "image": "m.i0", "y": "y", "x": "x"}
        start = " + ".join(f"{offset}(p.x_{name}) * {index}" for name, index in indices.items())
        load, weight = interface.a.load, interface.members[0].b.load
        assert load is not None and weight is not None, "windows of tensors alone"
        source, weights = kernel.arg_name(load.buffer), kernel.arg_name(weight.buffer)
        outputs = [kernel.arg_name(store.buffer) for store in self._member.stores]
        x_bound, window_x = self._x.bound, "true"
        if x_bound is not None:
            first_column = f"int32_t({interface.index_text(x_bound.row)})"
            tap_offset = f"tx * {self._x.scale * self._x.tap}"
            window_x = bound_test(x_bound, f"{first_column} + {tap_offset}", interface.index_text)
        return {
            "header": self.header(),
            "element": interface.element.cpp,
            "accumulator": interface.element.compute_dtype.cpp,
            "taps_y": y.taps if y else 1,
            "taps_x": self._x.taps,
            "step_y": y.step if y else 1,
            "tap_y": y.tap if y else 1,
            "fields": [f"{field.strip()};" for field in parameters.split(",")],
            "index_fields": "i0, i1, i2" if y else "i0, i1",
            "stores": [
                {**text, "vector": self._stores_vectors(store, int(config["VECTOR"]))}
                for text, store in zip(stores, self._member.stores, strict=True)
            ],
            "results": results,
            "multiplies": self.marks.mark(self._member.nodes),
            "input": source,
            "input_first": "p.x_at" if self._form.rest != 0 else "",
            "filter": weights,
            "filter_at": "p.w_at + p.w_channel * channel"
            + (" + p.w_y * (tap / kTapsX) + p.w_x * (tap % kTapsX)" if y else " + p.w_x * tap"),
            "height": f"p.{height}" if y else "1",
            "width": f"p.{width}",
            "host_height": height,
            "host_width": width,
            "set_spatial": "m.i1 = y; m.i2 = x;" if y else "m.i1 = x;",
            "set_row": (f"m.i1 = y + r; m.flat = (m.i0 * p.{height} + y + r) * p.{width} + x;")
            if y
            else f"m.flat = m.i0 * p.{width} + x;",
            "offset": offset,
            "own": f"({start}){scale}" if scale else start,
            "scale": scale,
            "window_y": self._window_y(),
            "window_x": window_x,
            "parameters": parameters.replace("* ", "* __restrict__ "),
            "arguments": names,
            "signature": kernel.signature(PLACEHOLDER),
            "checks": [
                *(
                    f"if ({name} == nullptr) return kiln::kNullPointer;"
                    for name in dict.fromkeys((source, weights, *outputs))
                ),
                *(
                    f"if (reinterpret_cast<uintptr_t>({name}) % (VECTOR * sizeof(*{name})) != 0)"
                    " return hipErrorInvalidValue;"
                    for name in dict.fromkeys((source, *outputs))
                ),
            ],
        }

    def _window_y(self) -> list[str]:
        """Return statements that clamp ``low`` and ``high`` to the input."""
        y = self._y
        if y is None or y.bound is None:
            return []
        row = self.interface.index_text(y.bound.row)
        lines = [f"const int32_t top = int32_t({row});"]
        if y.bound.nonnegative:
            lines.append(f"if (top < 0) low = (-top + {y.scale - 1}) / {y.scale};")
        if y.bound.limit is not None:
            limit = self.interface.index_text(y.bound.limit)
            lines.append(
                f"const int32_t last = kiln::floor_div(int32_t({limit}) - 1 - top, {y.scale});"
            )
            lines.append("if (last < high) high = last;")
        return lines

    def _stores_vectors(self, store: Store, width: int) -> bool:
        """Whether the results of a thread's channels are contiguous whole vectors."""
        ranges = loop_ranges(self._member.batch, self._member.m, self._member.n)
        form = address(store, self.lowered.buffers[store.buffer], ranges)
        if width == 1 or form is None or form.at(self._channel.var) != 1:
            return False
        return all(is_multiple(step, width) for step in self._other_steps(form))
