"""``KILN_FENCE``: what is allowed on a machine that lacks a required part of the sandbox."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from scheduler.errors import UserError

AVAILABLE, REQUIRED, OPTIONAL = "available", "required", "optional"


def incomplete_reason(choice: str) -> str:
    """Return why nothing that others send is read or run here, in one line; "" if it is.

    With ``OPTIONAL`` the operator has accepted the risk of a missing part of the sandbox.
    """
    from scheduler.sandbox import sandbox_status  # noqa: PLC0415 -- it takes a while

    missing = sandbox_status().missing
    if choice == OPTIONAL or not missing:
        return ""
    why = "; ".join(f"{part.name}: {part.note}" for part in missing)
    return (
        f"the fence of this machine is not whole ({why}): use a kernel that has it, or accept the"
        f" risk with KILN_FENCE={OPTIONAL}"
    )


def uploads_disabled_reason(choice: str) -> str:
    """Return why no uploaded file is read here, in one line; "" if they are."""
    reason = incomplete_reason(choice)
    return f"files that others send are not read on this machine: {reason}" if reason else ""


def require_sandbox() -> None:
    """Stop the start if a required part of the sandbox is missing."""
    from scheduler.sandbox import require  # noqa: PLC0415 -- it takes a while

    try:
        require()
    except UserError as error:
        raise ImproperlyConfigured(f"KILN_FENCE={REQUIRED}: {error}") from None


def require_uploads(choice: str) -> None:
    """Raise ``UserError`` if no uploaded file is read here."""
    if line := uploads_disabled_reason(choice):
        raise UserError(line)
