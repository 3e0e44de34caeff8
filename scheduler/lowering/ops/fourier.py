"""Rows of Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from scheduler.ir.ops import Elements, NoKernel, Op, op
from scheduler.ir.reference import fourier as ref
from scheduler.lowering import fourier

FAST = NoKernel("a fast Fourier transform has no kernel: it is no loop of reads")
_OF_SEVERAL = "self, s=None, dim=None, norm=None"
_OF_TWO = "self, s=None, dim=(-2, -1), norm=None"
_FREQUENCIES = "n, d=1.0, *, dtype=None, layout=None, device=None, pin_memory=None"


def _one(name: str, function: Callable[..., Any]) -> Op:
    return op(f"aten.fft_{name}", "self, n=None, dim=-1, norm=None", FAST, ref.one(function))


def _several(
    name: str, last: Callable[..., Any], others: Callable[..., Any], *, last_first: bool = False
) -> Iterator[Op]:
    rule = ref.several(last, others, last_first=last_first)
    yield op(f"aten.fft_{name}n", _OF_SEVERAL, FAST, rule)
    yield op(f"aten.fft_{name}2", _OF_TWO, FAST, rule)


ROWS = (
    op("aten._fft_c2c", "self, dim, normalization, forward", FAST, ref.complex_to_complex),
    op("aten._fft_r2c", "self, dim, normalization, onesided", FAST, ref.real_to_complex),
    op("aten._fft_c2r", "self, dim, normalization, last_dim_size", FAST, ref.complex_to_real),
    _one("fft", np.fft.fft),
    _one("ifft", np.fft.ifft),
    _one("rfft", np.fft.rfft),
    _one("irfft", np.fft.irfft),
    _one("hfft", np.fft.hfft),
    _one("ihfft", np.fft.ihfft),
    *_several("fft", np.fft.fft, np.fft.fft),
    *_several("ifft", np.fft.ifft, np.fft.ifft),
    *_several("rfft", np.fft.rfft, np.fft.fft, last_first=True),
    *_several("irfft", np.fft.irfft, np.fft.ifft),
    *_several("hfft", np.fft.hfft, np.fft.fft),
    *_several("ihfft", np.fft.ihfft, np.fft.ifft, last_first=True),
    op(
        "aten.fft_fftshift",
        "self, dim=None",
        fourier.shift,
        ref.shifted(np.fft.fftshift),
        Elements.COPIED,
    ),
    op(
        "aten.fft_ifftshift",
        "self, dim=None",
        fourier.shift_back,
        ref.shifted(np.fft.ifftshift),
        Elements.COPIED,
    ),
    op("aten.fft_fftfreq", _FREQUENCIES, fourier.frequencies, ref.frequencies(np.fft.fftfreq)),
    op(
        "aten.fft_rfftfreq",
        _FREQUENCIES,
        fourier.real_frequencies,
        ref.frequencies(np.fft.rfftfreq),
    ),
    op(
        "aten.stft",
        "default: self, n_fft, hop_length=None, win_length=None, window=None, normalized=False, "
        "onesided=None, return_complex=None, align_to_window=None; "
        "center: self, n_fft, hop_length=None, win_length=None, window=None, center=True, "
        "pad_mode='reflect', normalized=False, onesided=None, return_complex=None, "
        "align_to_window=None",
        FAST,
        ref.stft,
    ),
    op(
        "aten.istft",
        "self, n_fft, hop_length=None, win_length=None, window=None, center=True, "
        "normalized=False, onesided=None, length=None, return_complex=False",
        FAST,
        ref.istft,
    ),
)
