"""Small sources in CuteDSL, as templates make them: a sum, and two kernels with a workspace.
``KERNEL_NAME`` stands for the name."""

from __future__ import annotations

_HEAD = """\
# two lines above the code, as the metadata comment has them
#
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

"""

ADD = (
    _HEAD
    + """\
ARGUMENTS = (("x", "ptr", "f32"), ("y", "ptr", "f32"), ("out", "ptr", "f32"), ("n", "i32", ""))
WORKSPACE = "0"
POINTS = "n"
ELEMENTS = {"x": "n", "y": "n", "out": "n"}


@cute.kernel
def add(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 256 + thread
    if i < cute.size(x):
        out[i] = x[i] + y[i]


add.set_name_prefix("KERNEL_NAME_kernel", remove_cutlass_symbol=True, keep_mangled_name=False)


@cute.jit
def KERNEL_NAME(
    x: cute.Pointer,
    y: cute.Pointer,
    out: cute.Pointer,
    n: cutlass.Int32,
    workspace: cute.Pointer,
    stream: cuda.CUstream,
):
    tensors = [cute.make_tensor(each, cute.make_layout(n)) for each in (x, y, out)]
    add(*tensors).launch(grid=(cute.ceil_div(n, 256), 1, 1), block=(256, 1, 1), stream=stream)
"""
)

TWO = (
    _HEAD
    + """\
ARGUMENTS = (("x", "ptr", "f32"), ("out", "ptr", "f32"), ("n", "i32", ""))
WORKSPACE = "n * 4"
POINTS = "n"
ELEMENTS = {"x": "n", "out": "n"}


@cute.kernel
def first(x: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(128))
    i = block * 128 + thread
    if i < cute.size(x):
        shared[thread] = x[i] * 3
        out[i] = shared[thread]


@cute.kernel
def second(x: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 128 + thread
    if i < cute.size(x):
        out[i] = x[i] + 1


first.set_name_prefix("KERNEL_NAME_first", remove_cutlass_symbol=True, keep_mangled_name=False)
second.set_name_prefix("KERNEL_NAME_second", remove_cutlass_symbol=True, keep_mangled_name=False)


@cute.jit
def KERNEL_NAME(
    x: cute.Pointer,
    out: cute.Pointer,
    n: cutlass.Int32,
    workspace: cute.Pointer,
    stream: cuda.CUstream,
):
    layout = cute.make_layout(n)
    middle = cute.make_tensor(cute.recast_ptr(workspace, dtype=cutlass.Float32), layout)
    grid = (cute.ceil_div(n, 128), 1, 1)
    first(cute.make_tensor(x, layout), middle).launch(grid=grid, block=(128, 1, 1), stream=stream)
    second(middle, cute.make_tensor(out, layout)).launch(
        grid=grid, block=(128, 1, 1), stream=stream
    )
"""
)


def named(source: str, name: str) -> str:
    """The text of a kernel of that name."""
    return source.replace("KERNEL_NAME", name)
