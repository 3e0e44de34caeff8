"""Entries of the audit log say from where, outlive the account, and cannot be changed."""

from __future__ import annotations

from django.db import migrations, models

# What deletes an account takes the reference to it away: the one change that an entry allows.
GUARD = """
CREATE FUNCTION kiln_guard_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.at < now() - interval '29 days' THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.actor_id IS NULL
        AND to_jsonb(NEW) - 'actor_id' = to_jsonb(OLD) - 'actor_id' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'entries of the audit log are not changed';
END $$;
CREATE TRIGGER kiln_guard_audit BEFORE UPDATE OR DELETE ON codegen_app_auditentry
    FOR EACH ROW EXECUTE FUNCTION kiln_guard_audit();
"""
UNGUARD = """
DROP TRIGGER kiln_guard_audit ON codegen_app_auditentry;
DROP FUNCTION kiln_guard_audit();
"""
NAMES = """
UPDATE codegen_app_auditentry AS entry SET actor_name = account.username
    FROM auth_user AS account WHERE account.id = entry.actor_id;
"""


class Migration(migrations.Migration):
    dependencies = [("codegen_app", "0009_readings")]

    operations = [
        migrations.AddField(
            "auditentry",
            "actor_name",
            models.CharField(blank=True, default="", max_length=150),
            preserve_default=False,
        ),
        migrations.AddField(
            "auditentry", "address", models.GenericIPAddressField(blank=True, null=True)
        ),
        migrations.AddField(
            "auditentry",
            "user_agent",
            models.CharField(blank=True, default="", max_length=200),
            preserve_default=False,
        ),
        migrations.AlterField(
            "auditentry", "at", models.DateTimeField(auto_now_add=True, db_index=True)
        ),
        migrations.RunSQL(NAMES, migrations.RunSQL.noop),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
