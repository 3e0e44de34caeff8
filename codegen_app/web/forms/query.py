"""Forms that parse the query string of each page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS

_MAX_KEY = 2**63 - 1  # the largest key of a row


HiddenParams: TypeAlias = list[tuple[str, str]]
"""Parameters of an address with their values."""


def hidden_params(params: Mapping[str, str], names: Iterable[str]) -> HiddenParams:
    """Return these parameters of the address as hidden fields of another form."""
    return [(name, value) for name in names if (value := params.get(name, ""))]


class Number(forms.IntegerField):
    """An optional whole number."""

    def __init__(self) -> None:
        message = "not an integer; ignored."
        super().__init__(
            required=False,
            min_value=0,
            max_value=_MAX_KEY,
            error_messages=dict.fromkeys(("invalid", "min_value", "max_value"), message),
        )


class Text(forms.CharField):
    """An optional line of text."""

    def __init__(self) -> None:
        super().__init__(required=False, max_length=500)


class OptionalChoiceField(Text):
    """An optional word out of the valid ones."""

    def __init__(self, known: Iterable[str]) -> None:
        super().__init__()
        self.known = tuple(known)

    def clean(self, value: object) -> str:
        given: str = super().clean(value)
        if given and given not in self.known:
            raise forms.ValidationError(
                "unknown value %(given)s. Choices: %(known)s.",
                params={"given": given, "known": ", ".join(self.known)},
            )
        return given


class QueryForm(forms.Form):
    """Parameters of a page's address, all optional. The page reports each invalid one (``lines``)
    and is shown as without it."""

    def __init__(self, params: Mapping[str, str]) -> None:
        super().__init__(params)
        self.full_clean()

    def number(self, name: str) -> int | None:
        """Return a ``Number`` of the address."""
        value: int | None = self.cleaned_data.get(name)
        return value

    def text(self, name: str) -> str:
        """Return a ``Text`` of the address; "" if it is missing."""
        return str(self.cleaned_data.get(name, ""))

    @property
    def lines(self) -> list[str]:
        """Return the errors, one line each."""
        return [
            str(error) if name == NON_FIELD_ERRORS else f"{name}: {error}"
            for name, errors in self.errors.items()
            for error in errors
        ]


class OverviewForm(QueryForm):
    """The graph that the page summarises; by default the newest with times."""

    graph = Number()


class GraphForm(QueryForm):
    """The table beside the drawing, the meaning of the drawing's colours, and the selected
    scheduled node or graph node."""

    KIND, TIME = "kind", "time"
    KERNELS, NODES, FUSION, WRAPPER = "kernels", "nodes", "fusion", "wrapper"

    view = Text()
    scheduled = Text()
    node = Text()
    times = Text()
    colour = OptionalChoiceField((KIND, TIME))

    def view_name(self, *, has_wrapper: bool) -> str:
        """Return the table: by default, or if the address names none that exists, that of the
        kernels."""
        views = (self.NODES, self.FUSION, *((self.WRAPPER,) if has_wrapper else ()))
        return view if (view := self.text("view")) in views else self.KERNELS


class NodeForm(QueryForm):
    """The bucket of times, the target of the legality rules, the sizes of the limits, the chart's
    axes, and the language of the candidates."""

    sizes = Number()
    times = Text()
    target = Text()
    language = Text()
    x = Text()
    y = Text()
    colour = Text()


class ExternalKernelForm(QueryForm):
    """An external kernel: its timeline from the cycle ``at``."""

    at = Number()


KERNEL_TABS = ("resources", "instructions", "modelled", "results", "roofline", "uses", "builds")


class KernelForm(QueryForm):
    """The build, or the target of the build; the node and the sizes; a loop alone, by its first
    line; ``of``: the graph node whose lines are marked; ``waiting``: the build that the page polls
    for; ``view``: the text shown as the listing; ``model``: the modelling shown beside it, with its
    ``launch`` (from 1) and its timeline from the cycle ``at``; ``tab``: the section below the code;
    ``part``: the part of the page to return alone."""

    build = Number()
    target = Text()
    node = Number()
    sizes = Number()
    loop = Number()
    waiting = Number()
    of = Text()
    view = Text()
    model = Number()
    launch = Number()
    at = Number()
    tab = OptionalChoiceField(KERNEL_TABS)
    part = OptionalChoiceField(("modelled", "tab"))


class KernelsForm(QueryForm):
    """The graph (0: all), the language, the bucket of times and the target of registers."""

    graph = Number()
    language = Text()
    times = Text()
    target = Text()


class SearchForm(QueryForm):
    """The search text."""

    q = Text()


class PaletteForm(SearchForm):
    """The search text, and the address of the current page."""

    at = Text()


class RunForm(QueryForm):
    """``show=all``: also candidates that were never tried; ``language``: only those in one."""

    show = Text()
    language = Text()


class BundleForm(QueryForm):
    """The node of a kernel, or the bucket of a graph's selections."""

    node = Number()
    times = Text()


class PackForm(QueryForm):
    """The bucket of a graph's selections, or a kernel at one of its nodes (a use's key)."""

    times = Text()
    use = Number()
