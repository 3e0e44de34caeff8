"""What an account may do beyond reading; each permission is independent.

Their names are those of the models' ``Meta.permissions``, which the admin shows, too.
"""

from __future__ import annotations

IMPORT = "codegen_app.import_graph"
BUILD = "codegen_app.build"
RETUNE = "codegen_app.retune"
SELECT = "codegen_app.select"
SCHEDULE = "codegen_app.schedule"
TOKENS = "codegen_app.make_tokens"
TRIAGE = "codegen_app.triage"
NOTIFY = "codegen_app.notify"
WORKERS = "codegen_app.steer_workers"

TITLES = {
    IMPORT: "Can import graphs",
    BUILD: "Can ask for builds of kernels, with flags",
    RETUNE: "Can start and cancel tuning runs",
    SELECT: "Can change which kernels serve",
    SCHEDULE: "Can schedule tuning runs",
    TOKENS: "Can make and revoke API tokens",
    TRIAGE: "Can triage alerts, set thresholds and baselines",
    NOTIFY: "Can say who is told of alerts",
    WORKERS: "Can pause, drain and pin workers",
}
