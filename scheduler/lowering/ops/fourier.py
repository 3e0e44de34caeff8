"""Rows of Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from scheduler.ir.ops import Elements, NoKernel, Op, op
from scheduler.ir.reference import fourier as ref
from scheduler.lowering import fourier as rules

NO_FFT = NoKernel("no kernels are generated for fast Fourier transforms")
_OF_SEVERAL = "self, s=None, dim=None, norm=None"
_OF_TWO = "self, s=None, dim=(-2, -1), norm=None"
_FREQUENCIES = "n, d=1.0, *, dtype=None, layout=None, device=None, pin_memory=None"


def _fft_1d(name: str, function: Callable[..., Any]) -> Op:
    return op(f"aten.fft_{name}", "self, n=None, dim=-1, norm=None", NO_FFT, ref.fft_1d(function))


def _fft_nd(
    name: str, last: Callable[..., Any], others: Callable[..., Any], *, last_first: bool = False
) -> Iterator[Op]:
    rule = ref.fft_nd(last, others, last_first=last_first)
    yield op(f"aten.fft_{name}n", _OF_SEVERAL, NO_FFT, rule)
    yield op(f"aten.fft_{name}2", _OF_TWO, NO_FFT, rule)


ROWS = (
    op("aten._fft_c2c", "self, dim, normalization, forward", NO_FFT, ref.complex_to_complex),
    op("aten._fft_r2c", "self, dim, normalization, onesided", NO_FFT, ref.real_to_complex),
    op("aten._fft_c2r", "self, dim, normalization, last_dim_size", NO_FFT, ref.complex_to_real),
    _fft_1d("fft", np.fft.fft),
    _fft_1d("ifft", np.fft.ifft),
    _fft_1d("rfft", np.fft.rfft),
    _fft_1d("irfft", np.fft.irfft),
    _fft_1d("hfft", np.fft.hfft),
    _fft_1d("ihfft", np.fft.ihfft),
    *_fft_nd("fft", np.fft.fft, np.fft.fft),
    *_fft_nd("ifft", np.fft.ifft, np.fft.ifft),
    *_fft_nd("rfft", np.fft.rfft, np.fft.fft, last_first=True),
    *_fft_nd("irfft", np.fft.irfft, np.fft.ifft),
    *_fft_nd("hfft", np.fft.hfft, np.fft.fft),
    *_fft_nd("ihfft", np.fft.ihfft, np.fft.ifft, last_first=True),
    op(
        "aten.fft_fftshift",
        "self, dim=None",
        rules.fftshift,
        ref.fftshift(np.fft.fftshift),
        Elements.COPIED,
    ),
    op(
        "aten.fft_ifftshift",
        "self, dim=None",
        rules.ifftshift,
        ref.fftshift(np.fft.ifftshift),
        Elements.COPIED,
    ),
    op("aten.fft_fftfreq", _FREQUENCIES, rules.frequencies, ref.frequencies(np.fft.fftfreq)),
    op("aten.fft_rfftfreq", _FREQUENCIES, rules.real_frequencies, ref.frequencies(np.fft.rfftfreq)),
    op(
        "aten.stft",
        "default: self, n_fft, hop_length=None, win_length=None, window=None, normalized=False, "
        "onesided=None, return_complex=None, align_to_window=None; "
        "center: self, n_fft, hop_length=None, win_length=None, window=None, center=True, "
        "pad_mode='reflect', normalized=False, onesided=None, return_complex=None, "
        "align_to_window=None",
        NO_FFT,
        ref.stft,
    ),
    op(
        "aten.istft",
        "self, n_fft, hop_length=None, win_length=None, window=None, center=True, "
        "normalized=False, onesided=None, length=None, return_complex=False",
        NO_FFT,
        ref.istft,
    ),
)
