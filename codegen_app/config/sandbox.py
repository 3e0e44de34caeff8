"""Whether files that others send are read on this machine, by ``KILN_FENCE``."""

from __future__ import annotations

from scheduler.errors import UserError

AVAILABLE, REQUIRED, OPTIONAL = "available", "required", "optional"


def uploads_disabled_reason(choice: str) -> str:
    """Why no file of others is read here, in one line; "" where they are.

    With ``OPTIONAL`` the operator has accepted what a missing part of the fence means.
    """
    from scheduler.sandbox import in_force  # noqa: PLC0415 -- it takes a while

    missing = in_force().missing
    if choice == OPTIONAL or not missing:
        return ""
    why = "; ".join(f"{part.name}: {part.note}" for part in missing)
    return (
        f"files that others send are not read on this machine, whose fence is not whole ({why}):"
        f" use a kernel that has it, or accept the risk with KILN_FENCE={OPTIONAL}"
    )


def require_uploads(choice: str) -> None:
    """Raise ``UserError`` where no file of others is read here."""
    if line := uploads_disabled_reason(choice):
        raise UserError(line)
