"""Colours as people see them: contrast, and how far apart two are, colour-blind readers included.

Contrast is WCAG 2.2's. Distances are in Oklab (Ottosson 2020), times 100, after the simulation of
Machado, Oliveira and Fernandes (2009) at full severity: 2 is about what is just seen side by side.
"""

from __future__ import annotations

from math import atan2, degrees, dist, hypot

Triple = tuple[float, float, float]
_SEEN = {
    "normal": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
_CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_OKLAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def contrast(one: str, other: str) -> float:
    """WCAG's contrast of two colours (``#rrggbb``), 1 to 21."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def difference(one: str, other: str, vision: str = "normal") -> float:
    """How far apart two colours are for that kind of vision, 0 to about 100."""
    return 100 * dist(_oklab(one, vision), _oklab(other, vision))


def hue_and_chroma(colour: str) -> tuple[float, float]:
    """The hue in degrees (blue is about 250) and how much of it there is, 0 to about 0.3."""
    _, a, b = _oklab(colour, "normal")
    return degrees(atan2(b, a)) % 360, hypot(a, b)


def _luminance(colour: str) -> float:
    red, green, blue = _linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(colour: str) -> Triple:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return _expand(red), _expand(green), _expand(blue)


def _expand(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)


def _oklab(colour: str, vision: str) -> Triple:
    seen = [min(1.0, max(0.0, value)) for value in _times(_SEEN[vision], _linear(colour))]
    cones = _times(_CONES, (seen[0], seen[1], seen[2]))
    return _times(_OKLAB, (cones[0] ** (1 / 3), cones[1] ** (1 / 3), cones[2] ** (1 / 3)))


def _times(matrix: tuple[Triple, Triple, Triple], vector: Triple) -> Triple:
    one, two, three = (
        sum(factor * value for factor, value in zip(row, vector, strict=True)) for row in matrix
    )
    return one, two, three
