"""The log of one problem in the format of Inductor's ``AUTOTUNE`` blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler.tuning.ledger import CandidateState, Entry, Operand, best_of_backends
from scheduler.tuning.modelled_time import ModelledTime, devices_of

#: The end of a log's title if the times are modelled.
NOT_MEASURED = ", not measured)"


def band_text(modelled: ModelledTime) -> str:
    """Format ``0.0123 ms (0.0100 to 0.0150)``: the middle of the band, and its ends."""
    band = modelled.time_ns
    return f"{band.mid / 1e6:.4f} ms ({band.low / 1e6:.4f} to {band.high / 1e6:.4f})"


def autotune_text(
    title: str,
    operands: Sequence[Operand],
    entries: Iterable[Entry],
    seconds: float,
    *,
    modelled: bool = False,
) -> str:
    """Return the log: times in ms, speed relative to the selected candidate.

    As Inductor's readers expect, the selected candidate comes first, with the reason for the
    selection; the others follow by time. One that ties with it, or was eliminated before the last
    rounds, may exceed 100%. The title says if the times are of the CPU emulation, or ``modelled``;
    then each line says what keeps a candidate from being preferred.
    """
    timed = []
    for entry in entries:
        time_ns = entry.median_ns
        if modelled:
            time_ns = None if entry.modelled is None else entry.modelled.time_ns.mid
        if time_ns is not None:
            is_chosen = entry.state is CandidateState.CHOSEN
            timed.append((not is_chosen, time_ns, entry.kernel, entry))
    timed.sort(key=lambda line: line[:3])
    origin = ""
    if modelled:
        devices = ", ".join(devices_of(entry.modelled for *_, entry in timed)) or "nothing"
        origin = f" (times modelled for {devices}{NOT_MEASURED}"
    elif any(
        line_entry.measurement is not None and line_entry.measurement.emulated
        for *_, line_entry in timed
    ):
        origin = " (times of the CPU emulation)"
    lines = [
        f"AUTOTUNE {title}{origin}",
        "strides: " + ", ".join(str(list(operand.stride)) for operand in operands),
        "dtypes: " + ", ".join(operand.dtype for operand in operands),
    ]
    for not_chosen, time_ns, name, entry in timed:
        share = timed[0][1] / time_ns
        tied = "tied" if entry.tied else ""
        if modelled and entry.modelled is not None:
            time, note = band_text(entry.modelled), "; ".join(filter(None, (tied, entry.reason)))
        else:
            time, note = f"{time_ns / 1e6:.4f} ms", ("" if not_chosen else entry.reason) or tied
        note = f" ({note})" if note else ""
        lines.append(f"  {name} {time} {share:.1%} {entry.description}{note}")
    backends = () if modelled else best_of_backends(entry for *_, entry in timed)
    if len(backends) > 1:
        lines.append(f"best of each backend: {', '.join(map(str, backends))}")
    verb = "modelling" if modelled else "SingleProcess AUTOTUNE benchmarking"
    lines.append(f"{verb} takes {seconds:.4f} seconds for {len(timed)} choices")
    return "\n".join(lines) + "\n"
