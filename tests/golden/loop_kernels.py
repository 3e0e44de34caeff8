"""Loop kernels and attention whose rendered texts are recorded whole."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.codegen.template import KernelTemplate
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import Pointwise, Store
from scheduler.ir.values import Call, Cast, Load
from tests.unit.codegen.cutedsl import cutedsl_attention, cutedsl_template
from tests.unit.codegen.loopnest import at, axes, buffer
from tests.unit.codegen.test_attention_kernels import attention
from tests.unit.codegen.test_pointwise_kernels import SYMBOL, S, template
from tests.unit.codegen.test_reduction_kernels import layer_norm, reduction
from tests.unit.codegen.test_shared_reductions import norm_of_columns


def bias_and_tanh(make: Callable[..., KernelTemplate] = template) -> KernelTemplate:
    """tanh(x + bias) of [s27, 64] bf16."""
    walked = axes(S, 64)
    biased = Call(
        "add",
        (
            Cast(Load("x", at(walked), DType.BF16), DType.F32),
            Load("b", (walked[1].var,), DType.F32),
        ),
        DType.F32,
    )
    value = Call("tanh", (biased,), DType.F32)
    buffers = [
        buffer("x", DType.BF16, (S, 64)),
        buffer("b", DType.F32, (64,)),
        buffer("y", DType.BF16, (S, 64)),
    ]
    store = Store("y", at(walked), value, ("add0",))
    return make([Pointwise("op0", walked, store, ("add0",))], buffers, (SYMBOL,))


def bias_and_tanh_in_cutedsl() -> KernelTemplate:
    """The same, for NVIDIA."""
    return bias_and_tanh(cutedsl_template)


def norm() -> KernelTemplate:
    """A layer norm of [s27, 96] f16 without a bias."""
    members, buffers = layer_norm(S, 96)
    return reduction(members, buffers, (SYMBOL,), needed=("y",))


def column_norm() -> KernelTemplate:
    """The same over columns of [4096, s27]: two loops of sums, and one that stores."""
    members, buffers = norm_of_columns(4096, S)
    return reduction(members, buffers, (SYMBOL,), needed=("y",))


def causal_attention() -> KernelTemplate:
    """2 x 4 heads of depth 64 in f16, causal, one key head for two."""
    return attention(DType.F16, S, 512, 64, 64, causal=True, key_heads=2)


def causal_attention_in_cutedsl() -> KernelTemplate:
    """The same for NVIDIA, without an epilogue."""
    return cutedsl_attention(DType.F16, S, 512, 64, 64, causal=True, key_heads=2, plain=True)


def prepared_attention_in_cutedsl() -> KernelTemplate:
    """Masked, with keys that are computed and an epilogue."""
    return cutedsl_attention(DType.BF16, S, 130, 128, 128, mask=DType.BOOL, computed=True)


KERNELS = {
    "pointwise_bf16.hip": bias_and_tanh,
    "pointwise_bf16.py.txt": bias_and_tanh_in_cutedsl,
    "layer_norm_f16.hip": norm,
    "column_norm_f16.hip": column_norm,
    "attention_f16.hip": causal_attention,
    "attention_f16.py.txt": causal_attention_in_cutedsl,
    "attention_prepared_bf16.py.txt": prepared_attention_in_cutedsl,
}


def rendered(name: str) -> str:
    made = KERNELS[name]()
    packs = {"threads": 256, "vector": 8}
    config = packs if name.startswith("pointwise_bf16") else made.default_config()
    if name.startswith("column"):
        config = {"lanes": 4, "vector": 1, "keep": False, "columns": 1, "split": 16}
    return made.generate(config).kernel.source
