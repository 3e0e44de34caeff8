"""Rows of ops that draw random numbers."""

from __future__ import annotations

from scheduler.ir.ops import Elements, NoKernel, op
from scheduler.ir.reference import random as ref
from scheduler.lowering import philox
from scheduler.lowering import random as rules
from scheduler.lowering.ops.creation import OPTIONS

LIKE = f"{OPTIONS}, memory_format=None"
ORDER = NoKernel("no kernels are generated for random permutations or samples: they are sorted")

ROWS = (
    op("aten.rand", f"size, {OPTIONS}", rules.rand, ref.rand),
    op(
        "rngprims.philox_rand",
        "default: size, seed, offset, stride, device=None, dtype=None",
        philox.philox_rand,
        ref.philox_rand,
    ),
    op("aten.rand_like", f"self, {LIKE}", rules.rand, ref.rand),
    op("aten.randn", f"size, {OPTIONS}", rules.randn, ref.randn),
    op("aten.randn_like", f"self, {LIKE}", rules.randn, ref.randn),
    op(
        "aten.randint",
        f"high, size, {OPTIONS}; low: low, high, size, {OPTIONS}",
        rules.randint,
        ref.randint,
    ),
    op(
        "aten.randint_like",
        f"self, high, {LIKE}; low_dtype: self, low, high, {LIKE}",
        rules.randint,
        ref.randint,
    ),
    op("aten.randperm", f"n, {OPTIONS}", ORDER, ref.randperm),
    op(
        "aten.multinomial",
        "self, num_samples, replacement=False, *, generator=None",
        ORDER,
        ref.multinomial,
    ),
    op(
        "aten.bernoulli",
        "self, *, generator=None; p Tensor: self, p, *, generator=None; "
        "float: self, p=0.5, *, generator=None",
        rules.bernoulli,
        ref.bernoulli,
    ),
    op("aten.uniform", "self, from_=0.0, to=1.0, *, generator=None", rules.uniform, ref.uniform),
    op(
        "aten.normal",
        "Tensor_float: mean, std=1.0, *, generator=None; "
        "Tensor_Tensor float_Tensor: mean, std, *, generator=None; "
        "float_float: mean, std, size, *, generator=None, dtype=None, layout=None, device=None, "
        "pin_memory=None; "
        "default: self, mean=0.0, std=1.0, *, generator=None",
        rules.normal,
        ref.normal,
    ),
    op(
        "aten.normal_functional",
        "self, mean=0.0, std=1.0, *, generator=None",
        rules.normal,
        ref.normal,
    ),
    op(
        "aten.log_normal",
        "self, mean=1.0, std=2.0, *, generator=None",
        rules.log_normal,
        ref.log_normal,
    ),
    op(
        "aten.exponential", "self, lambd=1.0, *, generator=None", rules.exponential, ref.exponential
    ),
    op("aten.cauchy", "self, median=0.0, sigma=1.0, *, generator=None", rules.cauchy, ref.cauchy),
    op("aten.geometric", "self, p, *, generator=None", rules.geometric, ref.geometric),
    op(
        "aten.dropout",
        "input, p, train",
        rules.dropout,
        ref.dropout,
        Elements.VIEWED_UNLESS_TRAINING,
    ),
    *(
        op(
            f"aten.{name}",
            "input, p, train",
            rules.noise_dropout(feature="feature" in name, alpha="alpha" in name),
            ref.noise_dropout(feature="feature" in name, alpha="alpha" in name),
            Elements.VIEWED_UNLESS_TRAINING,
        )
        for name in ("alpha_dropout", "feature_dropout", "feature_alpha_dropout")
    ),
    op(
        "aten.poisson",
        "self, generator=None",
        NoKernel("no kernels are generated for Poisson samples: their distribution is inverted"),
        ref.poisson,
    ),
    op("aten.native_dropout", "input, p, train", rules.native_dropout, ref.native_dropout),
    op(
        "aten.native_dropout_backward",
        "grad_output, mask, scale",
        rules.native_dropout_backward,
        ref.native_dropout_backward,
    ),
    op(
        "aten.rrelu",
        "self, lower=0.125, upper=0.3333333333333333, training=False, generator=None",
        rules.rrelu,
        ref.rrelu,
    ),
)
