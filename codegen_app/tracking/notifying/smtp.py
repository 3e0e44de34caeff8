"""One e-mail through Django's settings: plain text, to all addresses of a channel at once."""

from __future__ import annotations

import smtplib
from collections.abc import Sequence
from email.utils import parseaddr
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.smtp import EmailBackend

from codegen_app.tracking.notifying.attempt import Attempt

Replies = dict[str, tuple[int, bytes]]


def is_set_up() -> bool:
    """Return whether the operator configured a server."""
    return bool(settings.EMAIL_HOST)


def send(subject: str, text: str, to: Sequence[str], key: UUID) -> Attempt:
    """Send the e-mail once. If some addresses accepted it, it is delivered, and the note names the
    others."""
    if not is_set_up():
        return Attempt.permanent("no mail server is configured (KILN_EMAIL_HOST)")
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "kiln.invalid"
    message = EmailMessage(
        subject,
        text,
        settings.DEFAULT_FROM_EMAIL,
        list(to),
        headers={
            "Auto-Submitted": "auto-generated",
            "Message-ID": f"<{key}@{domain}>",
            "Kiln-Delivery": str(key),
        },
    )
    try:
        rejected = _transmit(message, list(to))
    except smtplib.SMTPRecipientsRefused as error:
        line = f"rejected for {_replies(error.recipients)}"
        if any(code < 500 for code, _ in error.recipients.values()):
            return Attempt.temporary(line)
        return Attempt.permanent(line)
    except smtplib.SMTPResponseException as error:
        reply = _reply(error.smtp_code, error.smtp_error)
        if 500 <= error.smtp_code < 600:
            return Attempt.permanent(reply)
        return Attempt.temporary(reply)
    except smtplib.SMTPNotSupportedError as error:
        return Attempt.permanent(f"not supported by the mail server: {error}")
    except (smtplib.SMTPException, OSError) as error:
        why = str(error) or type(error).__name__
        return Attempt.temporary(f"sending through {settings.EMAIL_HOST} failed: {why}")
    return Attempt.delivered(note=f"rejected for {_replies(rejected)}" if rejected else "")


def _transmit(message: EmailMessage, to: list[str]) -> Replies:
    """Send the e-mail; return the replies of rejected addresses, which Django's own function does
    not report."""
    backend = get_connection()
    if not isinstance(backend, EmailBackend):
        backend.send_messages([message])
        return {}
    backend.open()
    try:
        content = message.message().as_bytes(linesep="\r\n")
        _, sender = parseaddr(message.from_email)
        assert backend.connection is not None, "it is open"
        rejected: Replies = backend.connection.sendmail(sender, to, content)
    finally:
        backend.close()
    return rejected


def _replies(replies: Replies) -> str:
    return "; ".join(f"{to} ({_reply(*reply)})" for to, reply in sorted(replies.items()))


def _reply(code: int, text: bytes | str) -> str:
    words = text.decode(errors="replace") if isinstance(text, bytes) else text
    return f"SMTP {code}: {words}"
