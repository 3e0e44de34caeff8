"""Format numbers, states and times consistently on every page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import floor, log10
from typing import Any

from django import template
from django.template import Context
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from codegen_app.accounts import permissions
from codegen_app.web.addresses import replace_query
from codegen_app.web.figures import FIGURE_KINDS
from codegen_app.web.pagecache.compressed import SECRET
from codegen_app.web.pagecache.reader import NAME, is_cached_request
from scheduler.benchmark.metrics import METRICS, TIME, MetricRow
from scheduler.stats.intervals import bounds_cell, bounds_of, bounds_text

register = template.Library()


@register.simple_tag(takes_context=True)
def needs(context: Context, what: str, permission: str) -> SafeString | str:
    """Render a line in place of a control that the reader may not use; empty if they may. The
    permission's name may lack its app."""
    user = context["request"].user
    if not user.is_authenticated:
        return format_html('<span class="note">{} requires login.</span>', what)
    name = f"codegen_app.{permission.removeprefix('codegen_app.')}"
    if user.has_perm(name):
        return ""
    line = '<span class="note">{} requires the permission “{}”.</span>'
    return format_html(line, what, permissions.TITLES[name])


_GLYPHS = {
    "queued": "wait",
    "running": "run",
    "done": "ok",
    "rejected": "bad",
    "cancelled": "off",
    "quarantined": "bad",
    "delivered": "ok",
    "failed": "bad",
    "on": "ok",
    "off": "off",
}
_THIN_SPACE = "\u202f"  # a narrow no-break space: 12 345


def grouped(number: float, digits: int = 0) -> str:
    """Format a number with grouped thousands: ``12 345.7``."""
    return f"{number:,.{digits}f}".replace(",", _THIN_SPACE)


@register.filter
def secret(text: str) -> SafeString:
    """Keep a constant secret out of the compressed part of the response: the compressed length
    would reveal whether text from the address is a part of it."""
    return format_html("{}{}{}", SECRET, text, SECRET)


@register.filter
def integer(value: float | None) -> str:
    """Format a whole number with grouped thousands; empty for None."""
    return "" if value is None else grouped(value)


@register.filter
def signed(value: int | None) -> str:
    """Format a difference with its sign; empty for None."""
    if value is None:
        return ""
    return f"+{grouped(value)}" if value > 0 else grouped(value).replace("-", "\u2212")


_LEAST_US = 0.001  # the smallest value with three decimal digits


@register.filter
def us(value_ns: float | None) -> str:
    """Format nanoseconds as microseconds with about four digits, for a column headed µs."""
    if value_ns is None:
        return ""
    value = value_ns / 1000
    if 0 < value < _LEAST_US / 2:
        return f"<{_LEAST_US}"
    digits = 0 if value >= 1000 else 1 if value >= 100 else 2 if value >= 10 else 3
    return grouped(value, digits)


@register.filter
def microseconds(value: float | None) -> str:
    """Format microseconds with about four digits, for a column headed µs."""
    return "" if value is None else us(value * 1000)


@register.filter
def band(interval: Any) -> str:
    """Format a modelled figure in microseconds, from the low to the high ends of its constants."""
    return f"{microseconds(interval.low)} \N{EN DASH} {microseconds(interval.high)}"


@register.filter
def cycles(value: float | None) -> str:
    """Format a mean of cycles or counts with its significant digits."""
    if value is None:
        return ""
    is_whole = value >= 100 or value == round(value)
    return grouped(value) if is_whole else f"{value:.1f}" if value >= 10 else f"{value:.3g}"


@register.filter
def figure(value: float | None, unit: str) -> str:
    """Format a figure of that unit; empty for None. Counts have no decimals."""
    if value is None:
        return ""
    if not unit and value == int(value):
        return integer(value)
    return microseconds(value) if unit == "µs" else fixed(value, _DIGITS.get(unit, 2))


_DIGITS = {"%": 1, "cycles": 0}


@register.filter
def times(ratio: float | None) -> str:
    """Format a ratio as a factor; empty for None."""
    return (
        "" if ratio is None else f"{fixed(ratio, 0 if ratio >= 1000 else 3)}\N{MULTIPLICATION SIGN}"
    )


@register.filter
def percentage(value: float) -> float:
    """Convert percent to a share (0 to 1)."""
    return value / 100


@register.filter
def at(values: Sequence[Any], place: int) -> Any:
    """Return the value at an index."""
    return values[place]


@register.filter
def interval(measured: Any) -> str:
    """Format ``low_ns`` to ``high_ns`` of a row in microseconds for a column of intervals: a range
    is labelled as one, and a single sample as having none. Empty if it was not measured."""
    low, high = getattr(measured, "low_ns", None), getattr(measured, "high_ns", None)
    if getattr(measured, "n", 0) == 1:
        return "n/a (one sample)"
    return "" if low is None or high is None else bounds_cell(measured.n, us(low), us(high))


@register.filter
def bounds_and_n(measured: Any) -> str:
    """Format ``low_ns`` to ``high_ns`` of a row with their label and n, for a sentence; only n for
    a single sample."""
    n = f"n = {measured.n}"
    if measured.low_ns is None or not bounds_of(measured.n):
        return n
    return f"{bounds_text(measured.n, us(measured.low_ns), us(measured.high_ns))} µs, {n}"


@register.simple_tag
def derived_metrics() -> list[tuple[str, MetricRow]]:
    """Return every metric except the time, which has its own columns."""
    return [(name, row) for name, row in METRICS.items() if name != TIME]


@register.filter
def metric(measured: Any, name: str) -> str:
    """Format a row's metric of that name with three digits; empty if it has none."""
    figure = getattr(measured, "metrics", {}).get(name)
    if figure is None:
        return ""
    magnitude = floor(log10(abs(figure.value))) if figure.value else 0
    return grouped(figure.value, max(0, 2 - magnitude))


@register.filter
def counted(counts: Mapping[str, int]) -> str:
    """Format counts with their labels: ``1 234 same, 2 changed``."""
    return ", ".join(f"{grouped(count)} {name}" for name, count in counts.items())


@register.filter
def fixed(value: float | None, digits: int = 2) -> str:
    """Format a number with that many decimal digits."""
    return "" if value is None else grouped(value, digits)


@register.filter
def kib(value: float | None) -> str:
    """Format bytes as KiB, for a column headed KiB; whole numbers without decimals."""
    if value is None:
        return ""
    return grouped(value / 1024, 0 if value % 1024 == 0 else 1)


@register.filter
def gib(value: float) -> str:
    """Format bytes as GiB, for a column headed GiB."""
    return grouped(value / 2**30, 1)


@register.filter
def giga(value: float) -> str:
    """Format bytes per second as GB/s, for a column that says so."""
    return grouped(value / 1e9)


@register.filter
def tera(value: float) -> str:
    """Format operations per second in units of 10¹², for a column that says so."""
    return grouped(value / 1e12, 1)


@register.filter
def symbol(bounds: Mapping[str, Any]) -> str:
    """Format a symbolic size as ``128 (2 … 512)``: its example's value and its bounds."""
    high = bounds.get("max")
    return f"{bounds['hint']} ({bounds['min']} … {'any' if high is None else high})"


@register.filter
def basename(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]


@register.filter
def unprefixed(name: str, prefix: str) -> str:
    """Remove a prefix that is shown beside the name: ``…_device``."""
    rest = name.removeprefix(prefix)
    return f"…{rest}" if prefix and rest and rest != name else name


@register.filter
def kernel_name(name: str) -> SafeString | str:
    """Render a kernel's name for a table: names share a prefix, so if space is short the beginning
    is cut and the last ops and the digest remain. The text and the title are complete."""
    if not name:
        return ""
    return format_html(
        '<span class="kernel-name" title="{0}"><bdi dir="ltr">{0}</bdi></span>', name
    )


@register.filter
def stack(frames: Sequence[Mapping[str, Any]]) -> str:
    """Format frames as lines, innermost last."""
    return "\n".join(f"{f['file']}:{f['line']} in {f['function']}" for f in frames)


@register.filter
def percent(value: float | None) -> str:
    """Format a share (0 to 1) as a percentage without its sign, for a column headed %."""
    return "" if value is None else f"{value * 100:.1f}"


@register.filter
def get(mapping: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key; None if there is none."""
    return mapping.get(key)


@register.filter
def pairs(value: Mapping[str, Any] | None) -> str:
    """Format a mapping on one line: ``block_m=128 block_n=64``."""
    return " ".join(f"{key}={item}" for key, item in (value or {}).items())


@register.filter
def tail(text: str, lines: int = 40) -> str:
    """Return the last lines of a log, with a note on the omitted ones."""
    parts = text.rstrip().split("\n")
    if len(parts) <= lines:
        return "\n".join(parts)
    return f"… {len(parts) - lines} lines above\n" + "\n".join(parts[-lines:])


@register.simple_tag
def status(state: str, label: str = "") -> SafeString:
    """Render a state with its colour and glyph."""
    return format_html(
        '<span class="status {}">{}</span>', _GLYPHS.get(state, "wait"), label or state
    )


@register.simple_tag
def fact(name: str, value: Any, title: str = "", unit: str = "", label: str = "") -> SafeString:
    """Render a name with its value, within ``dl.facts``; empty if there is no value."""
    if value is None or value == "":
        return SafeString("")
    hover = format_html(' title="{}"', title) if title else ""
    content = format_html_join(" ", "{}", ((part,) for part in (value, unit, label) if part != ""))
    return format_html("<div><dt>{}</dt><dd{}>{}</dd></div>", name, hover, content)


@register.inclusion_tag("web/empty.html")
def nothing_yet(missing: str, command: str = "", url: str = "", link: str = "") -> dict[str, str]:
    """Render what is missing, and the command or the page that creates it."""
    return {"missing": missing, "command": command, "url": url, "link": link}


@register.simple_tag
def line_links(lines: Sequence[tuple[int, int]], url: str, limit: int = 0) -> SafeString:
    """Render links to ranges of a source's lines, (first, last) each; beyond ``limit`` a single
    one."""
    shown = lines[:limit] if limit else lines
    links = [
        format_html(
            '<a class="line" href="{}#L{}">{}</a>',
            url,
            first,
            first if first == last else f"{first}\N{EN DASH}{last}",
        )
        for first, last in shown
    ]
    if len(shown) < len(lines):
        links.append(
            format_html(
                '<a class="line" href="{}#L{}" title="{} parts">\N{HORIZONTAL ELLIPSIS}</a>',
                url,
                lines[0][0],
                len(lines),
            )
        )
    return format_html_join(" ", "{}", ((link,) for link in links))


def _label(css: str, text: str, title: str) -> SafeString:
    return format_html('<span class="{}" title="{}">{}</span>', css, title, text)


@register.simple_tag
def figure_kind(name: str) -> SafeString:
    """Render the label of a kind of figure (``codegen_app.web.figures``)."""
    (kind,) = (kind for kind in FIGURE_KINDS if kind.name == name)
    return _label(f"tag {name}", name, kind.meaning)


@register.simple_tag
def emulated(flag: bool) -> SafeString:
    """Render the label of every emulated time; empty for a device's own time."""
    title = "Measured on the CPU emulation: not comparable with GPU times"
    return _label("tag emulated", "emulated", title) if flag else SafeString("")


@register.simple_tag
def generated(is_generated: bool) -> SafeString:
    """Render the label of a series whose data was generated; empty for measured data."""
    title = "Generated data with known changes and causes: not measured"
    return _label("tag generated", "generated", title) if is_generated else SafeString("")


@register.simple_tag
def modelled(where: str) -> SafeString:
    """Render the label of modelled figures, with board and sizes in its title."""
    title = f"Computed from the instructions by a model of {where}: not measured"
    return _label("tag modelled", "modelled", title)


@register.simple_tag
def recorded(origin: str) -> SafeString:
    """Render the origin of a time measured on another installation; empty for our own."""
    title = "Measured on another machine and imported: device, driver, date, Kiln version"
    return _label("note recorded", f"recorded: {origin}", title) if origin else SafeString("")


@register.simple_tag
def share_bar(share: float) -> SafeString:
    """Render a share (0 to 1) as a bar; the figure stands beside it."""
    width = f"{100 * min(max(share, 0.0), 1.0):.1f}"
    bar = '<svg class="bar" aria-hidden="true"><rect width="{}%" height="8"></rect></svg>'
    return format_html(bar, width)


@register.filter
def ago(moment: datetime | None) -> SafeString:
    """Render the elapsed time, with the exact time on hover; the page keeps it current."""
    if moment is None:
        return SafeString("")
    seconds = max(0, int((datetime.now(UTC) - moment).total_seconds()))
    for name, length in (("day", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if seconds >= length or name == "s":
            count = seconds // length
            break
    plural = "s" if name == "day" and count != 1 else ""
    return format_html(
        '<time data-ago datetime="{}" title="{}">{} {}{} ago</time>',
        moment.isoformat(),
        moment.strftime("%Y-%m-%d %H:%M:%S UTC"),
        count,
        name,
        plural,
    )


@register.simple_tag(takes_context=True)
def theme(context: Context) -> str:
    """Return the reader's chosen theme; empty if the system decides."""
    chosen: str = context["request"].COOKIES.get("theme", "")
    return chosen if chosen in ("light", "dark") else ""


@register.simple_tag(takes_context=True)
def account(context: Context) -> str:
    """Return the reader's name; a placeholder in a page cached for all readers."""
    request = context["request"]
    if is_cached_request(request):
        return NAME
    name: str = request.user.get_username()
    return name


@register.simple_tag(takes_context=True)
def with_query(context: Context, **changes: Any) -> str:
    """Return this page's address with some parameters changed; empty ones are left out."""
    return replace_query(context["request"], **changes)


@register.simple_tag(takes_context=True)
def build_query(context: Context, build: int, **changes: Any) -> str:
    """Return a kernel page's address for another build, without what was chosen for this one."""
    of_build = ("target", "model", "launch", "at", "waiting", "loop", "part")
    cleared: dict[str, Any] = dict.fromkeys(of_build, "")
    return replace_query(context["request"], build=build, **cleared, **changes)
