"""HIP C++: Pygments' rules for CUDA, extended for HIP and the compiler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pygments.lexers.c_like import CudaLexer
from pygments.token import Keyword, Name, _TokenType

_QUALIFIERS = frozenset({"__launch_bounds__", "__grid_constant__", "PT_EXPORT", "__align__"})
_TYPES = frozenset(
    {"half", "half2", "__half", "__half2", "_Float16", "__bf16", "hip_bfloat16", "hipStream_t"}
    | {"hipError_t", "dim3", "bool", "size_t"}
    | {f"{sign}int{width}_t" for sign in ("", "u") for width in (8, 16, 32, 64)}
)
_BUILTINS = frozenset(
    {"hipLaunchKernelGGL", "__syncthreads", "__threadfence", "__threadfence_block"}
    | {"__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__ballot", "__any", "__all"}
)


class HipLexer(CudaLexer):
    """``CudaLexer`` with HIP's types, launch bounds and the compiler's builtins."""

    name = "HIP"
    aliases = ["hip"]
    filenames = ["*.hip"]

    def get_tokens_unprocessed(
        self, text: str, stack: Iterable[str] = ("root",)
    ) -> Iterator[tuple[int, _TokenType, str]]:
        """Yield tokens of ``text`` (position, type, value); never an error for valid HIP."""
        for position, token, value in super().get_tokens_unprocessed(text, stack):  # type: ignore[no-untyped-call]
            yield position, _refine(token, value), value


def _refine(token: _TokenType, value: str) -> _TokenType:
    if token is not Name and token.parent is not Name:
        return token
    if value in _QUALIFIERS:
        return Keyword
    if value in _TYPES:
        return Keyword.Type
    if value in _BUILTINS or value.startswith(("__builtin_", "__hip_atomic_")):
        return Name.Builtin
    return token
