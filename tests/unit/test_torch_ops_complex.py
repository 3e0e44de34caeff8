"""Complex numbers against torch: functions, parts, sums, products, moves, Fourier transforms."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
fft = torch.fft

BOTH = pytest.mark.parametrize("decompose", [False, True])


def _randn(*size: int, seed: int = 1, dtype: Any = torch.complex128) -> Any:
    return torch.randn(*size, dtype=dtype, generator=torch.Generator().manual_seed(seed))


Z, W, X = _randn(3, 4), _randn(3, 4, seed=2), _randn(3, 4, seed=3, dtype=torch.float64)
EDGES = torch.tensor([0, 1, -1, 1j, -1j, 2 + 0.5j, -2 - 0.5j, 1e-3 - 1e-3j], dtype=torch.cdouble)


@BOTH
def test_functions(tmp_path: Path, decompose: bool) -> None:
    def functions(z: Any) -> tuple[Any, ...]:
        return (
            *(z.exp(), z.sqrt(), z.sin(), z.cos(), z.tan(), z.sinh(), z.cosh(), z.tanh()),
            *(z.asin(), z.acos(), z.atan(), z.asinh(), z.acosh(), z.atanh(), z.sigmoid()),
            *(z.exp2(), z.expm1(), z.reciprocal(), z.rsqrt(), z.square(), z**2, z**3, z**0.5),
            *((z + 3).log(), (z + 3).log2(), (z + 3).log10(), z.log1p(), z**-1, z**1.5),
            *(z.abs(), z.angle(), z.sgn(), -z, torch.isnan(z), torch.isinf(z), torch.isfinite(z)),
            *(torch.logical_not(z), z == 1, z != z.conj(), z.bool(), (2.0 + 1j) ** z),
        )

    agree(
        as_module(functions), (torch.cat([Z.flatten(), EDGES[5:]]),), tmp_path, decompose=decompose
    )


@BOTH
def test_functions_at_the_edges(tmp_path: Path, decompose: bool) -> None:
    def functions(z: Any, x: Any) -> tuple[Any, ...]:
        of_reals = x.angle(), x.sgn(), x.conj(), x.real
        return (z.exp(), z.sqrt(), z.abs(), z.angle(), z.sgn(), z.sin(), z.tanh(), *of_reals)

    x = torch.tensor([0.0, -0.0, -1.5, 2.0, math.nan, math.inf, -math.inf], dtype=torch.double)
    agree(as_module(functions), (EDGES, x), tmp_path, decompose=decompose)


@BOTH
def test_arithmetic_and_types(tmp_path: Path, decompose: bool) -> None:
    def arithmetic(z: Any, w: Any, x: Any, n: Any) -> tuple[Any, ...]:
        return (
            *(z + w, z - w, z * w, z / w, z * x, x - z, z + n, z * 2, x * (1 + 2j), x + 1j),
            *(torch.add(z, w, alpha=1j), z**w, x**w, torch.addcmul(z, w, z, value=2j), 1j - z),
            *(torch.where(x > 0, z, w), torch.where(x > 0, z, x), z.masked_fill(x > 0, 1j)),
            *(z.to(torch.complex64), x.to(torch.complex64), x.to(torch.complex128), n + 1j),
            *(torch.full((2,), 1.5j), torch.zeros_like(z), torch.ones(2, dtype=torch.cfloat)),
            *(
                torch.lerp(z, w, 0.25),
                torch.lerp(z, w, 0.75),
                z.clone().mul_(w),
                z.conj() * w,
                torch.dot(z[0], w[0]),
            ),
        )

    args = Z, W, X, torch.arange(4)
    agree(as_module(arithmetic), args, tmp_path, decompose=decompose)


@pytest.mark.full(but=["False"])
@BOTH
def test_parts(tmp_path: Path, decompose: bool) -> None:
    def parts(z: Any, x: Any) -> tuple[Any, ...]:
        pairs = x.reshape(3, 2, 2)
        return (
            *(z.real, z.imag, z.conj(), z.conj().imag, z.mH, z.T.conj() + 1, z.conj_physical()),
            *(torch.view_as_real(z), torch.view_as_complex(pairs), torch.view_as_real(z * z)),
            *(torch.view_as_real(z).flatten(1), torch.view_as_real(z).select(-1, 1)),
            *(torch.complex(x, x + 1), torch.polar(x.abs(), x), z.conj().resolve_conj()),
            *(torch.view_as_complex(pairs.transpose(0, 1)), z.conj().imag.resolve_neg()),
        )

    agree(as_module(parts), (Z, X), tmp_path, decompose=decompose)


@BOTH
def test_sums_and_products(tmp_path: Path, decompose: bool) -> None:
    def sums(z: Any, w: Any, x: Any) -> tuple[Any, ...]:
        return (
            *(z.sum(), z.sum(1), z.mean(0), z.prod(), z.prod(1), z.cumsum(0), z.cumprod(1)),
            *(z.var(), z.var(1, correction=0), z.std(0), torch.var_mean(z, 1)[1]),
            *(torch.linalg.vector_norm(z), torch.linalg.vector_norm(z, 1, 1), z.norm(dim=0)),
            *(z @ w.T, z @ w.mH, z @ w[0], torch.vdot(z[0], w[0]), torch.mm(z.T, w) + 1j),
            *(torch.bmm(z[None], w.T[None]), torch.addmm(z[:, :3], z, w.T, alpha=2j, beta=0.5)),
            *(torch.outer(z[0], w[1]), x.sum(dtype=torch.complex128), z.any(), z.all(1)),
            *(z.sum().real, torch.nn.functional.linear(z, w), z.T @ w.conj()),
        )

    agree(as_module(sums), (Z, W, X), tmp_path, decompose=decompose)


@BOTH
def test_moves(tmp_path: Path, decompose: bool) -> None:
    def moves(z: Any, w: Any, i: Any) -> tuple[Any, ...]:
        return (
            *(torch.cat([z, w]), torch.stack([z, w.conj()]), z[i], z[:, ::2], z.T, z.flip(1)),
            *(z.gather(1, i[:, None]), torch.nn.functional.pad(z, (1, 0)), z.roll(1, 0), z.tril()),
            *(
                z.repeat(2, 1),
                z.expand(2, 3, 4),
                z.index_select(1, i),
                z.diagonal(),
                z.chunk(2, 1)[1],
            ),
        )

    agree(as_module(moves), (Z, W, torch.tensor([2, 0, 1])), tmp_path, decompose=decompose)


@BOTH
def test_rotary_embeddings_by_polar(tmp_path: Path, decompose: bool) -> None:
    x = X.float().reshape(1, 3, 1, 4)
    agree(as_module(rotated), (x, _angles()), tmp_path, decompose=decompose)


def rotated(x: Any, angles: Any) -> Any:
    """As Llama's reference code has it."""
    turns = torch.polar(torch.ones_like(angles), angles)[None, :, None]
    numbers = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(numbers * turns).flatten(3).type_as(x)


def _angles() -> Any:
    return torch.arange(3)[:, None] * torch.tensor([1.0, 0.1])


@BOTH
def test_fourier_transforms(tmp_path: Path, decompose: bool) -> None:
    def transforms(z: Any, x: Any) -> tuple[Any, ...]:
        half = fft.rfft(x)
        return (
            *(fft.fft(z), fft.ifft(z, dim=0), fft.fft(z, n=6), fft.ifft(z, n=2, norm="ortho")),
            *(fft.rfft(x), fft.irfft(half), fft.irfft(half, n=5), fft.rfft(x, norm="forward")),
            *(fft.hfft(half), fft.ihfft(x), fft.fft(x), fft.fft2(z), fft.ifft2(z), fft.rfft2(x)),
            *(fft.irfft2(half), fft.fftn(z), fft.ifftn(z, s=(2, 2)), fft.rfftn(x, norm="ortho")),
            *(fft.irfftn(half), fft.fftn(z, dim=(0,)), fft.hfft2(half), fft.ihfft2(x)),
            *(fft.fftshift(z), fft.ifftshift(z, dim=1), fft.fftshift(x[0]), fft.ifftshift(x)),
        )

    agree(as_module(transforms), (Z, X), tmp_path, decompose=decompose)


def test_frequencies(tmp_path: Path) -> None:
    def frequencies(x: Any) -> tuple[Any, ...]:
        options = {"dtype": torch.float64}
        odd, even = fft.fftfreq(7, 0.5, **options), fft.fftfreq(8, **options)
        return x[:1, :1] * odd, even, fft.rfftfreq(7, 0.5, **options), fft.rfftfreq(8, **options)

    agree(as_module(frequencies), (X,), tmp_path)


@BOTH
def test_transforms_of_windows(tmp_path: Path, decompose: bool) -> None:
    def windows(x: Any, window: Any) -> tuple[Any, ...]:
        made = torch.stft(x, 8, 3, window=window, return_complex=True)
        plain = torch.stft(x, 8, window=window, center=False, normalized=True, return_complex=True)
        whole = torch.stft(x, 8, 2, 6, window[:6], onesided=False, return_complex=True)
        back = torch.istft(made, 8, 3, window=window)
        return made, plain, whole, torch.view_as_real(made), back

    x = _randn(2, 30, dtype=torch.float64)
    window = torch.hann_window(8, dtype=torch.float64) + 0.1
    agree(as_module(windows), (x, window), tmp_path, decompose=decompose)
