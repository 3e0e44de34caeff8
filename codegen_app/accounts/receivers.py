"""Logins, accounts and groups in the audit log, however they are changed."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model, user_logged_in, user_logged_out
from django.contrib.auth.models import Group, Permission, User
from django.db import models
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_save
from django.dispatch import receiver

from codegen_app.accounts import audit
from codegen_app.accounts.models import Identity

_PASSWORD = "_kiln_password_is_new"  # noqa: S105 - an attribute's name
_MEMBERS = {"post_add": "given", "post_remove": "no longer", "post_clear": "all removed"}


@receiver(user_logged_in)
def record_login(user: User, request: Any = None, **_: Any) -> None:
    by = getattr(request, "signed_in_by", "")
    audit.record(user, "login", user, f"by {by}" if by else "")


@receiver(user_logged_out)
def record_logout(user: User | None, **_: Any) -> None:
    if user is not None:
        audit.record(user, "logout", user)


@receiver(pre_save, sender=User)
def note_new_password(instance: User, update_fields: Any = None, **_: Any) -> None:
    if update_fields is not None and "password" not in update_fields:
        return
    before = get_user_model().objects.filter(pk=instance.pk).values_list("password", flat=True)
    setattr(instance, _PASSWORD, bool(before) and before[0] != instance.password)


@receiver(post_save, sender=User)
@receiver(post_save, sender=Group)
@receiver(post_save, sender=Identity)
def record_saved(
    instance: models.Model, created: bool, update_fields: Any = None, **_: Any
) -> None:
    if update_fields is not None and set(update_fields) <= {"last_login"}:
        return
    is_new_password = instance.__dict__.pop(_PASSWORD, False)
    action = "create" if created else "change password" if is_new_password else "change"
    flags = ("is_active", "is_staff", "is_superuser") if isinstance(instance, User) else ()
    rights = ", ".join(flag for flag in flags if getattr(instance, flag))
    audit.record(audit.current_user(), action, instance, rights)


@receiver(post_delete, sender=User)
@receiver(post_delete, sender=Group)
@receiver(post_delete, sender=Identity)
def record_deleted(instance: models.Model, **_: Any) -> None:
    audit.record(audit.current_user(), "delete", instance)


@receiver(m2m_changed, sender=User.groups.through)
@receiver(m2m_changed, sender=User.user_permissions.through)
@receiver(m2m_changed, sender=Group.permissions.through)
def record_members(
    instance: models.Model, action: str, model: type[models.Model], pk_set: Any, **_: Any
) -> None:
    if action not in _MEMBERS or (pk_set is not None and not pk_set):
        return
    rows = model._default_manager.filter(pk__in=pk_set or ())
    names = [row.codename if isinstance(row, Permission) else str(row) for row in rows]
    why = f"{_MEMBERS[action]}: {', '.join(sorted(names)) or model._meta.verbose_name_plural}"
    audit.record(audit.current_user(), "change rights", instance, why)
