"""A text with placeholders that are filled at the end, when their content is known."""

from __future__ import annotations

from collections.abc import Callable


class PartialRender:
    """A template's text and the functions that fill its placeholders, in this order.

    A template's header names its arguments and its epilogue before they are all known: strides
    become arguments while bodies are printed, and the rest of a source determines which device
    functions it needs.
    """

    def __init__(self, code: str, hooks: dict[str, Callable[[str], str]]) -> None:
        self.code = code
        self._hooks = dict(hooks)

    def finalize(self, placeholder: str) -> None:
        """Fill one placeholder, from the text as it is now. Raises ``ValueError`` for a placeholder
        that the text does not contain exactly once, and ``KeyError`` if nothing is left to fill it
        with."""
        hook = self._hooks.pop(placeholder)
        if self.code.count(placeholder) != 1:
            raise ValueError(
                f"{placeholder} occurs {self.code.count(placeholder)} times in a template"
            )
        self.code = self.code.replace(placeholder, hook(self.code))

    def finalize_all(self) -> str:
        """Fill the remaining placeholders."""
        for placeholder in tuple(self._hooks):
            self.finalize(placeholder)
        return self.code
