"""The log of a problem whose candidates were modelled, in the format of measured ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler.tuning.ledger import CandidateState, Entry, Operand
from scheduler.tuning.modelled_time import ModelledTime, devices_of

#: The end of such a log's title.
NOT_MEASURED = ", not measured)"


def band_text(one: ModelledTime) -> str:
    """Format ``0.0123 ms (0.0100 to 0.0150)``: the middle of the band, and its ends."""
    band = one.time_ns
    return f"{band.mid / 1e6:.4f} ms ({band.low / 1e6:.4f} to {band.high / 1e6:.4f})"


def modelled_text(
    title: str, operands: Sequence[Operand], entries: Iterable[Entry], seconds: float
) -> str:
    """Return the log: the selected candidate first, the others by time. The title says that they
    are modelled; each line says what keeps a candidate from being preferred."""
    timed = [
        (one.state is not CandidateState.CHOSEN, one.modelled.time_ns.mid, one.kernel, one)
        for one in entries
        if one.modelled is not None
    ]
    timed.sort(key=lambda item: item[:3])
    devices = ", ".join(devices_of(one.modelled for *_, one in timed)) or "nothing"
    lines = [
        f"AUTOTUNE {title} (times modelled for {devices}{NOT_MEASURED}",
        "strides: " + ", ".join(str(list(operand.stride)) for operand in operands),
        "dtypes: " + ", ".join(operand.dtype for operand in operands),
    ]
    for *_, one in timed:
        assert one.modelled is not None
        share = timed[0][1] / one.modelled.time_ns.mid
        notes = [*(["tied"] if one.tied else []), *([one.reason] if one.reason else [])]
        note = f" ({'; '.join(notes)})" if notes else ""
        text = band_text(one.modelled)
        lines.append(f"  {one.kernel} {text} {share:.1%} {one.description}{note}")
    lines.append(f"modelling takes {seconds:.4f} seconds for {len(timed)} choices")
    return "\n".join(lines) + "\n"
