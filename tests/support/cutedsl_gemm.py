"""A CuteDSL matrix product run with NumPy, all but its products: operands are packed, results
finished and stored by the source's own functions, thread after thread, and what TMA and wgmma do
between them is a product of the tensors that the host function describes.

Four lanes that hold a row together run side by side, since they shuffle.

A thread's sums are those of wgmma's fragment (PTX ISA, "Register Fragments for
wgmma.mma_async.m64nNk16"): of each 8 columns a lane holds two, in two rows that are 8 apart.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Barrier, BrokenBarrierError, local
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np

from scheduler.codegen.benchmark_request import TensorArg
from scheduler.codegen.caller import TemplateCaller
from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import evaluate
from tests.support import cutedsl
from tests.support.cutedsl import BY_LABEL, Float32, Int32, Numeric, Pointer, Raw
from tests.support.memory import from_device, to_device
from tests.unit.matrix.running import Array, elements, strided

_MOCKED = (
    "cutlass.pipeline",
    "cutlass.cute.nvgpu",
    "cutlass.utils",
    "cutlass.utils.hopper_helpers",
)


@dataclass
class _Lying:
    """A tensor of the host function: its axes, the last a batch of one or several."""

    pointer: Pointer
    shape: tuple[Any, ...]
    stride: tuple[Any, ...]

    def values(self, batches: int, k: int) -> Array:
        """[batches, rows, k] in float64, read where it lies."""
        rows, most, batch = self.shape
        assert k <= int(most)
        row_step, k_step, batch_step = self.stride
        sizes = [int(part) for part in (batch if isinstance(batch, tuple) else (batch,))]
        steps = batch_step if isinstance(batch_step, tuple) else (batch_step,)
        # CuTe counts a flat index up along the first axis first.
        places = np.unravel_index(np.arange(batches), sizes, order="F")
        first = sum(place * int(step) for place, step in zip(places, steps, strict=True))
        within = np.arange(int(rows))[:, None] * int(row_step) + np.arange(k) * int(k_step)
        memory = self.pointer.memory[self.pointer.offset :]
        return from_device(memory[first[:, None, None] + within], _dtype(self.pointer))


@dataclass
class _Windows:
    """An image of ((w, h, d, images), channels) that is read window by window (PTX ISA, "Im2col
    mode"): ``starts`` of the windows and ``places`` in one, along width, height and depth."""

    image: _Lying
    starts: tuple[Array, ...]
    places: tuple[Array, ...]

    @staticmethod
    def of(
        _op: Any,
        image: Any,
        _layout: Any,
        _tile: Any,
        *,
        lower_corner_whd: tuple[int, ...],
        upper_corner_whd: tuple[int, ...],
        upper_padding_whd: tuple[int, ...],
        stride_whd: tuple[int, ...],
        stride_srt: tuple[int, ...],
        **_: Any,
    ) -> tuple[None, _Windows]:
        """As ``make_im2col_tma_atom``: a window begins between both corners."""
        sizes, _channels = image.shape
        bounds = zip(sizes[:3], lower_corner_whd, upper_corner_whd, stride_whd, strict=True)
        reach = zip(upper_padding_whd, upper_corner_whd, stride_srt, strict=True)
        starts = tuple(np.arange(low, size + high, by) for size, low, high, by in bounds)
        places = tuple(np.arange(0, after - high + 1, by) for after, high, by in reach)
        return None, _Windows(image, starts, places)

    def values(self, batches: int, k: int) -> Array:
        """[1, output pixels, k] in float64, 0 outside of the image."""
        assert batches == 1
        (*sides, images), channels = self.image.shape
        (*steps, image_step), _ = self.image.stride
        memory = self.image.pointer.memory[self.image.pointer.offset :]
        address = np.arange(int(images)).reshape(-1, *[1] * 7) * int(image_step)
        inside = np.ones((1,) * 8, bool)
        for place, (side, step) in enumerate(zip(sides, steps, strict=True)):
            at = np.add.outer(self.starts[place], self.places[place])
            # Axes: images, then pixels and places from the outermost dimension to the innermost.
            shape = [1] * 8
            shape[3 - place], shape[6 - place] = at.shape
            address = address + np.clip(at, 0, side - 1).reshape(shape) * int(step)
            inside = inside & ((at >= 0) & (at < side)).reshape(shape)
        address, inside = np.broadcast_arrays(address + np.arange(channels), inside)
        found = from_device(memory[address], _dtype(self.image.pointer)) * inside
        rows = int(np.prod(found.shape[:4]))
        return found.reshape(1, rows, -1)[:, :, :k]


def _dtype(pointer: Pointer) -> DType:
    return DType.from_label(pointer.dtype.label)


class _Fragment:
    """The sums of one thread of a warpgroup, or (``places``) where in the tile they belong."""

    def __init__(self, thread: int, atoms: int, step: int, tile: Array | None = None) -> None:
        self.atoms, self._tile, self._step = atoms, tile, step
        group, self._thread = divmod(thread, 128)
        self._first = group * 64

    def __getitem__(self, index: tuple[tuple[int, int, int] | tuple[int, ...], int, int]) -> Any:
        (pair, row, block), atom, _ = index
        warp, lane = divmod(self._thread, 32)
        m = self._first + atom * self._step + warp * 16 + lane // 4 + 8 * row
        n = 8 * block + lane % 4 * 2 + pair
        if self._tile is None:
            return Int32(Raw(m)), Int32(Raw(n))
        return Float32(Raw(np.float32(self._tile[m, n])))


class _Quad:
    """Four lanes, each in a thread of its own, and what they give each other."""

    def __init__(self) -> None:
        self._own = local()
        self._meeting = Barrier(4)
        self._given: list[Any] = [None] * 4
        self._lanes = ThreadPoolExecutor(4)

    def run(self, lane: Callable[[int], None]) -> None:
        """Call it for each of the lanes, at once. What one of them raises ends all."""
        runs = [self._lanes.submit(self._run, lane, number) for number in range(4)]
        errors = [error for run in runs if (error := run.exception()) is not None]
        for error in sorted(errors, key=lambda error: isinstance(error, BrokenBarrierError)):
            raise error

    def _run(self, lane: Callable[[int], None], number: int) -> None:
        self._own.number = number
        try:
            lane(number)
        except BaseException:
            self._meeting.abort()
            raise

    def from_lane(self, value: Numeric, offset: Any) -> Numeric:
        """What the lane of that number has given."""
        return self._exchanged(value, int(offset) % 4)

    def across(self, value: Numeric, offset: int) -> Numeric:
        """What the lane has given whose number differs in the bits of ``offset``."""
        return self._exchanged(value, self._own.number ^ offset)

    def _exchanged(self, value: Numeric, lane: int) -> Numeric:
        self._given[self._own.number] = value
        self._meeting.wait()
        found = self._given[lane]
        self._meeting.wait()
        assert type(found) is type(value)
        return found  # type: ignore[no-any-return]


class _Tiles:
    """In place of the kernel that multiplies."""

    def __init__(self, source: dict[str, Any], caller: TemplateCaller, quad: _Quad) -> None:
        self._source = source
        self._names = tuple(arg.name for arg in caller.kernel.args)
        # Warpgroups that share a tile.
        self._together = (
            1 if caller.kernel.config["schedule"] == "pingpong" else source["CONSUMERS"]
        )
        self._quad = quad

    def __call__(self, _mma: Any, _a: Any, _b: Any, *args: Any) -> SimpleNamespace:
        tensors = [arg for arg in args if isinstance(arg, (_Lying, _Windows))]
        rest = args[2 * len(tensors) :]
        return SimpleNamespace(launch=lambda **_: self._launch(tensors, rest))

    def _launch(self, tensors: list[_Lying | _Windows], args: tuple[Any, ...]) -> None:
        named = dict(zip(self._names, args[:-1], strict=True))
        batches, k = int(named["batches"]), int(named["K"])
        constants = {name: self._source[name] for name in ("BLOCK_K", "SPLIT_K")}
        steps = -(-k // constants["BLOCK_K"])
        part_length = -(-steps // constants["SPLIT_K"]) * constants["BLOCK_K"]
        first, *seconds = tensors
        a = first.values(batches, k)
        for number, second in enumerate(seconds):
            suffix = str(number) if len(seconds) > 1 else ""
            if not int(named[f"N{suffix}"]):
                continue  # no tile is of it, and nothing is loaded
            b = second.values(batches, k)
            for part in range(constants["SPLIT_K"]):
                along = slice(part * part_length, min((part + 1) * part_length, k))
                product = a[:, :, along] @ b[:, :, along].transpose(0, 2, 1)
                for batch in range(batches):
                    self._store(suffix, product[batch], batch, part, args)

    def _store(self, suffix: str, product: Array, batch: int, part: int, args: Any) -> None:
        block_m, block_n = self._source["BLOCK_M"], self._source["BLOCK_N"]
        store = self._source[f"store_tile{suffix}"]
        together = self._together
        for m in range(0, product.shape[0], block_m):
            for n in range(0, product.shape[1], block_n):
                tile = np.zeros((block_m, block_n))
                inside = product[m : m + block_m, n : n + block_n]
                tile[: inside.shape[0], : inside.shape[1]] = inside
                where = [Int32(Raw(place)) for place in (m, n, batch, part)]
                for first in range(0, 128 * together, 4):
                    self._quad.run(partial(self._lane, store, tile, first, [*where, *args]))

    def _lane(
        self, store: Callable[..., None], tile: Array, first: int, args: list[Any], number: int
    ) -> None:
        thread, step = first + number, 64 * self._together
        given = (thread, len(tile) // step, step)
        lane = Int32(Raw(thread % 32))
        store(_Fragment(*given, tile), _Fragment(*given), lane, *args)


@contextmanager
def _modules(quad: _Quad) -> Iterator[None]:
    with cutedsl.modules():
        cute = sys.modules["cutlass.cute"]
        vars(cute.arch).update(shuffle_sync=quad.from_lane, shuffle_sync_bfly=quad.across)
        plain_tensor = cute.make_tensor
        kinds = ("TiledMma", "ComposedLayout", "CopyAtom", "Tensor")
        vars(cute).update(dict.fromkeys(kinds, object))
        vars(sys.modules["cutlass"]).update(Constexpr=object)
        vars(cute).update(
            ceil_div=lambda a, b: (a + (b - 1)) // b,
            size=lambda fragment, mode: fragment.atoms,
            slice_=lambda layout, _: layout,
            recast_ptr=_recast,
            recast_tensor=lambda tensor, dtype: tensor.recast(dtype),
            make_layout=lambda shape, stride=None: shape if stride is None else (shape, stride),
            make_tensor=lambda pointer, layout: (
                _Lying(pointer, *layout)
                if isinstance(layout, tuple)
                else plain_tensor(pointer, int(layout))
            ),
        )
        sys.modules.update({name: MagicMock() for name in _MOCKED})
        try:
            yield
        finally:
            for name in _MOCKED:
                del sys.modules[name]


def _recast(pointer: Pointer, dtype: type[Numeric]) -> Pointer:
    memory = pointer.memory[pointer.offset :]
    numpy = np.dtype(DType.from_label(dtype.label).numpy)
    each = max(1, numpy.itemsize // memory.itemsize)
    whole = memory[: memory.size // each * each]
    return Pointer(whole.view(numpy), dtype)


def run(
    caller: TemplateCaller, inputs: Mapping[str, Array], bindings: Mapping[str, int]
) -> dict[str, Array]:
    """Outputs by buffer, in float64; what nothing writes is NaN."""
    request = caller.benchmark_request("sm_90", dict(bindings))
    args: list[Any] = []
    numbers: dict[str, int] = {}
    outputs: dict[str, tuple[TensorArg, Array]] = {}
    for arg in request.args:
        if not isinstance(arg, TensorArg):
            numbers[arg.name] = int(arg.value)
            args.append(BY_LABEL[arg.type](Raw(arg.value)))
            continue
        dtype = DType.from_label(arg.dtype)
        memory = np.full(elements(arg) * dtype.itemsize, 0xFF, np.uint8).view(dtype.numpy)
        if arg.is_output:
            outputs[arg.buffer] = arg, memory
        else:
            strided(memory, arg)[...] = to_device(inputs[arg.buffer], dtype)
        args.append(cutedsl.memory_of(memory, arg.dtype))
    needed = evaluate(caller.kernel.workspace_bytes, {**bindings, **numbers})
    workspace = cutedsl.memory_of(np.full(needed, 0xFF, np.uint8), "u8")
    quad = _Quad()
    with _modules(quad):
        source: dict[str, Any] = {"__name__": caller.kernel.name}
        exec(compile(caller.kernel.source, caller.kernel.source_file, "exec"), source)
        source["shared_layout"] = lambda rows, k_major: None
        source["tensor_map"] = lambda tensor, layout, rows, copies: (None, tensor)
        source["cpasync"].make_im2col_tma_atom = _Windows.of
        source[f"{caller.kernel.name}_tiles"] = _Tiles(source, caller, quad)
        if cutedsl.has_points(source, numbers):
            source[caller.kernel.name](*args, workspace, cutedsl.STREAM)
    return {
        name: from_device(strided(memory, arg), DType.from_label(arg.dtype))
        for name, (arg, memory) in outputs.items()
    }
