"""Element types of tensors, with their names in torch's files, NumPy and HIP C++.

The integer codes are torch's ``ScalarType`` of the export schema
(torch/_export/serde/schema.py, ``class ScalarType``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class DTypeInfo:
    """One element type.

    ``eps`` is the unit roundoff (half the distance from 1 to the next value), 0 for integers;
    ``largest`` the largest finite value of a float type, or of the parts of a complex one.
    ``numpy`` is the type of arrays on the host; bfloat16 and 8-bit floats have no NumPy type and
    are stored as bit patterns in ``uint16`` and ``uint8``. ``torch`` is torch's name if it differs
    from NumPy's.
    """

    torch_code: int
    label: str
    itemsize: int
    cpp: str
    numpy: str
    eps: float
    largest: float = 0.0
    torch: str = ""


def _float8(torch_code: int, name: str, eps: float, largest: float) -> DTypeInfo:
    label = f"f8{name}"
    return DTypeInfo(
        torch_code, label, 1, f"kiln::{label}", "uint8", eps, largest, f"float8_{name}"
    )


class DType(Enum):
    """Element types that the engine supports."""

    U8 = DTypeInfo(1, "u8", 1, "uint8_t", "uint8", 0.0)
    I8 = DTypeInfo(2, "i8", 1, "int8_t", "int8", 0.0)
    I16 = DTypeInfo(3, "i16", 2, "int16_t", "int16", 0.0)
    I32 = DTypeInfo(4, "i32", 4, "int32_t", "int32", 0.0)
    I64 = DTypeInfo(5, "i64", 8, "int64_t", "int64", 0.0)
    F16 = DTypeInfo(6, "f16", 2, "_Float16", "float16", 2.0**-11, (2 - 2.0**-10) * 2.0**15)
    F32 = DTypeInfo(7, "f32", 4, "float", "float32", 2.0**-24, (2 - 2.0**-23) * 2.0**127)
    F64 = DTypeInfo(8, "f64", 8, "double", "float64", 2.0**-53, (2 - 2.0**-52) * 2.0**1023)
    C64 = DTypeInfo(10, "c64", 8, "kiln::complex<float>", "complex64", F32.eps, F32.largest)
    C128 = DTypeInfo(11, "c128", 16, "kiln::complex<double>", "complex128", F64.eps, F64.largest)
    BOOL = DTypeInfo(12, "b8", 1, "bool", "bool", 0.0)
    BF16 = DTypeInfo(
        13, "bf16", 2, "__bf16", "uint16", 2.0**-8, (2 - 2.0**-7) * 2.0**127, "bfloat16"
    )
    U16 = DTypeInfo(28, "u16", 2, "uint16_t", "uint16", 0.0)
    F8E4M3FN = _float8(29, "e4m3fn", 2.0**-4, 448.0)
    F8E5M2 = _float8(30, "e5m2", 2.0**-3, 57344.0)
    F8E4M3FNUZ = _float8(31, "e4m3fnuz", 2.0**-4, 240.0)
    F8E5M2FNUZ = _float8(32, "e5m2fnuz", 2.0**-3, 57344.0)
    F8E8M0FNU = _float8(33, "e8m0fnu", 0.5, 2.0**127)
    U32 = DTypeInfo(34, "u32", 4, "uint32_t", "uint32", 0.0)
    U64 = DTypeInfo(35, "u64", 8, "uint64_t", "uint64", 0.0)

    @property
    def label(self) -> str:
        """Inductor's short name, as in the metadata comment: ``f32``, ``bf16``, ``b8``."""
        return self.value.label

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.value.itemsize

    @property
    def cpp(self) -> str:
        """Name of the type in HIP C++."""
        return self.value.cpp

    @property
    def numpy(self) -> str:
        """Name of the NumPy type of arrays on the host."""
        return self.value.numpy

    @property
    def reference_numpy(self) -> str:
        """Name of the NumPy type that references compute in: float64 for floats, complex128 for
        complex numbers, else its own."""
        if self.is_complex:
            return "complex128"
        return "float64" if self.is_float else self.numpy

    @property
    def torch(self) -> str:
        """Name of the type in PyTorch: ``torch.float16``."""
        return f"torch.{self.value.torch or self.numpy}"

    @property
    def eps(self) -> float:
        """Unit roundoff; 0 for integers and booleans."""
        return self.value.eps

    @property
    def largest(self) -> float:
        """Largest finite value of a float type, or of a complex one's parts; 0 for the others."""
        return self.value.largest

    @property
    def smallest_positive(self) -> float:
        """Smallest positive number of a float type in kernels, which may flush subnormal f32 and
        f64 to 0."""
        return _LEAST.get(self, 0.0)

    @property
    def is_float(self) -> bool:
        """Whether values are real numbers that are rounded."""
        return self.value.eps > 0 and not self.is_complex

    @property
    def is_complex(self) -> bool:
        """Whether values are complex numbers."""
        return self in _REAL

    @property
    def is_inexact(self) -> bool:
        """Whether values are rounded: floats and complex numbers."""
        return self.value.eps > 0

    @property
    def real(self) -> DType:
        """The type of a complex number's parts; itself for the others."""
        return _REAL.get(self, self)

    @property
    def complex(self) -> DType:
        """The complex type with parts of this type (f32 for narrower types and integers); itself
        for complex types."""
        if self.is_complex:
            return self
        return DType.C128 if self is DType.F64 else DType.C64

    @property
    def accumulator(self) -> DType:
        """Type in which kernels sum values: the compute dtype; i64 for integers and booleans."""
        return self.compute_dtype if self.is_inexact else DType.I64

    @property
    def product_sum(self) -> DType:
        """Type in which matrix instructions sum products: the compute dtype; i32 for i8, whose sums
        wrap around like i64 sums truncated to 32 bits."""
        return DType.I32 if self is DType.I8 else self.compute_dtype

    @property
    def is_unsigned(self) -> bool:
        """Whether it is an integer type without negative values."""
        return self in _UNSIGNED

    @property
    def is_integer(self) -> bool:
        """Whether values are integers; False for booleans."""
        return not self.is_inexact and self is not DType.BOOL

    @property
    def compute_dtype(self) -> DType:
        """Type in which kernels hold a value between load and store (f32 for narrower floats)."""
        return DType.F32 if self.is_float and self.itemsize < 4 else self

    @property
    def is_stored_as_bits(self) -> bool:
        """Whether arrays on the host hold bit patterns, since NumPy has no such type."""
        return self.is_float and bool(self.value.torch)

    @property
    def is_float8(self) -> bool:
        """Whether it is an 8-bit float: rounding to it is intended (quantization)."""
        return self.is_float and self.itemsize == 1

    @staticmethod
    def from_torch_code(code: int) -> DType:
        """Return the type of torch's serialized number. Raises ``KeyError`` if unsupported."""
        return _BY_CODE[code]

    @staticmethod
    def from_label(label: str) -> DType:
        """Return the type of Inductor's short name. Raises ``KeyError`` if there is none."""
        return _BY_LABEL[label]


#: Unit roundoff of f32 that is rounded to 10 bits of mantissa (plus the implicit bit).
TF32_EPS = 2.0**-11
_LEAST = {
    DType.F16: 2.0**-24,
    DType.BF16: 2.0**-126,
    DType.F32: 2.0**-126,
    DType.F64: 2.0**-1022,
}
_REAL = {DType.C64: DType.F32, DType.C128: DType.F64}
_UNSIGNED = (DType.U8, DType.U16, DType.U32, DType.U64)
_BY_CODE = {d.value.torch_code: d for d in DType}
_BY_LABEL = {d.value.label: d for d in DType}
