"""A text with places that are filled at the end, when all is known that stands in them."""

from __future__ import annotations

from collections.abc import Callable


class PartialRender:
    """A template's text and what fills its placeholders, in this order.

    A template names its arguments and its epilogue before they are all known: strides become
    arguments while bodies are printed, and which device functions a source needs says the rest of
    it.
    """

    def __init__(self, code: str, hooks: dict[str, Callable[[str], str]]) -> None:
        self.code = code
        self._hooks = dict(hooks)

    def finalize(self, placeholder: str) -> None:
        """Fill one place, from the text as it is now. Raises ``ValueError`` for what the text does
        not hold exactly once, and ``KeyError`` where nothing is left to fill it with."""
        hook = self._hooks.pop(placeholder)
        if self.code.count(placeholder) != 1:
            raise ValueError(f"{placeholder} is {self.code.count(placeholder)} times in a template")
        self.code = self.code.replace(placeholder, hook(self.code))

    def finalize_all(self) -> str:
        """Fill the places that are left."""
        for placeholder in tuple(self._hooks):
            self.finalize(placeholder)
        return self.code
