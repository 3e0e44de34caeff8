"""What every page's address is read by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS

from codegen_app.selectors.pages.ops import MADE_BY

_MAX_KEY = 2**63 - 1  # what a key of a row can be


HiddenParams: TypeAlias = list[tuple[str, str]]
"""Parameters of an address with their values."""


def hidden_params(given: Mapping[str, str], names: Iterable[str]) -> HiddenParams:
    """These parameters of the address, for a form of another one to send along."""
    return [(name, value) for name in names if (value := given.get(name, ""))]


class Number(forms.IntegerField):
    """A whole number that may be left out."""

    def __init__(self) -> None:
        message = "it is no whole number, and is left out."
        super().__init__(
            required=False,
            min_value=0,
            max_value=_MAX_KEY,
            error_messages=dict.fromkeys(("invalid", "min_value", "max_value"), message),
        )


class Text(forms.CharField):
    """A line of text that may be left out."""

    def __init__(self) -> None:
        super().__init__(required=False, max_length=500)


class OptionalChoiceField(Text):
    """A word that may be left out, of those that there are."""

    def __init__(self, known: Iterable[str]) -> None:
        super().__init__()
        self.known = tuple(known)

    def clean(self, value: object) -> str:
        given: str = super().clean(value)
        if given and given not in self.known:
            raise forms.ValidationError(
                "%(given)s is none: there are %(known)s.",
                params={"given": given, "known": ", ".join(self.known)},
            )
        return given


class QueryForm(forms.Form):
    """Parameters of a page's address, all optional. The page says of each that is none what is
    wrong with it (``lines``), and is shown as without it."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.full_clean()

    def number(self, name: str) -> int | None:
        """A ``Number`` of the address."""
        found: int | None = self.cleaned_data.get(name)
        return found

    def text(self, name: str) -> str:
        """A ``Text`` of the address; "" where it is left out."""
        return str(self.cleaned_data.get(name, ""))

    @property
    def lines(self) -> list[str]:
        """What is wrong, a line each."""
        return [
            str(error) if name == NON_FIELD_ERRORS else f"{name}: {error}"
            for name, errors in self.errors.items()
            for error in errors
        ]


class OverviewForm(QueryForm):
    """Of which graph the page says most; of the newest with times where that is left out."""

    graph = Number()


class GraphForm(QueryForm):
    """Which table is shown beside the drawing, what its colours say, and which scheduled node or
    graph node is selected."""

    KIND, TIME = "kind", "time"
    KERNELS, NODES, FUSION, WRAPPER = "kernels", "nodes", "fusion", "wrapper"

    view = Text()
    scheduled = Text()
    node = Text()
    times = Text()
    colour = OptionalChoiceField((KIND, TIME))

    def view_name(self, *, has_wrapper: bool) -> str:
        """The table: that of the kernels where the address names none that there is."""
        there = (self.NODES, self.FUSION, *((self.WRAPPER,) if has_wrapper else ()))
        return view if (view := self.text("view")) in there else self.KERNELS


class NodeForm(QueryForm):
    """Whose times, whose rules and at which sizes its limits are shown, the chart's axes, and in
    which language the candidates are."""

    sizes = Number()
    times = Text()
    target = Text()
    language = Text()
    x = Text()
    y = Text()
    colour = Text()


class ExternalKernelForm(QueryForm):
    """Of a kernel of somebody else's: its timeline from the cycle ``at``."""

    at = Number()


class KernelForm(QueryForm):
    """Which build, for which node, at which sizes; a loop alone, by its first line; ``of``: which
    graph node's lines are marked; ``waiting``: the build that the page looks for; ``view``: which
    of its texts is shown as the listing; ``model``: which modelling is shown beside it, of it the
    ``launch`` (from 1) and its timeline from the cycle ``at``; ``part``: what of the page is asked
    for alone."""

    build = Number()
    node = Number()
    sizes = Number()
    loop = Number()
    waiting = Number()
    of = Text()
    view = Text()
    model = Number()
    launch = Number()
    at = Number()
    part = OptionalChoiceField(("modelled",))


class KernelsForm(QueryForm):
    """Kernels in a language; whose times and which target's registers are shown."""

    language = Text()
    times = Text()
    target = Text()


class OpsForm(QueryForm):
    """Words, what computes an op (``by``), and whether only Core ATen."""

    words = Text()
    by = OptionalChoiceField(MADE_BY)
    core = OptionalChoiceField(("only",))


class SearchForm(QueryForm):
    """What is searched for."""

    q = Text()


class PaletteForm(SearchForm):
    """What is searched for, and the address of the page that it is asked on."""

    at = Text()


class RunForm(QueryForm):
    """``show=all``: candidates that were never tried as well; ``language``: those in one."""

    show = Text()
    language = Text()


class BundleForm(QueryForm):
    """For which node a kernel, and of which bucket's choices a graph."""

    node = Number()
    times = Text()


class PackForm(QueryForm):
    """Of which bucket's choices a graph, or which kernel at which of its nodes (a use's key)."""

    times = Text()
    use = Number()
