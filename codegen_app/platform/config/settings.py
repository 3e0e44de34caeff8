"""Django's settings. Everything that differs between installations is an environment variable.

``deploy/README.md`` lists the variables; ``env.py`` reads them. Without any, the application uses
the demo's database, queue and files of this installation.
"""

from __future__ import annotations

import logging
import secrets
from datetime import timedelta

from django.contrib.messages import constants as levels

from codegen_app.platform.broker import transport
from codegen_app.platform.config import (
    bisect_commands,
    env,
    sandbox,
    sign_in,
    storage,
    tracing,
)
from codegen_app.platform.config.layout import LAYOUT
from codegen_app.platform.postgres import cluster_for

BASE_DIR = LAYOUT.packages
VAR_DIR = env.folder("KILN_VAR", LAYOUT.data(env.text("XDG_DATA_HOME")))

DEBUG = env.flag("KILN_DEBUG", default=False)
# Commands run without a configured key; pages are not served without one (serving.py).
SECRET_KEY_GIVEN = bool(env.text("KILN_SECRET_KEY"))
SECRET_KEY = env.text("KILN_SECRET_KEY") or secrets.token_urlsafe(50)
ALLOWED_HOSTS_GIVEN = bool(env.text("KILN_ALLOWED_HOSTS"))
ALLOWED_HOSTS = env.words("KILN_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("KILN_TRUSTED_ORIGINS")

# Why the demo runs as root, set by the demo itself (codegen_app/platform/system_user.py).
ROOT_BECAUSE = env.text("KILN_ROOT_BECAUSE")

# Reading the pages needs a login unless this is disabled; changing anything always does.
READ_NEEDS_LOGIN = env.flag("KILN_READ_NEEDS_LOGIN", default=True)

INSTALLED_APPS = [
    "codegen_app.apps.CodegenAppConfig",
    "codegen_app.apps.KilnAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "axes",
]

MIDDLEWARE = [
    "codegen_app.web.server.request_ids.RequestIdMiddleware",
    "codegen_app.site.probes.ProbesMiddleware",
    "codegen_app.web.server.errors.ApiErrorsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "codegen_app.web.middleware.HeadersMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "codegen_app.web.compression.CompressionMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "codegen_app.web.middleware.SlashMiddleware",
    "codegen_app.web.server.rules.RulesMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "codegen_app.accounts.sessions.SessionLimitsMiddleware",
    "codegen_app.accounts.origin.OriginMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "codegen_app.web.pagecache.cache.FreshMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
# Requests and work are traced, but not health checks.
if tracing.is_on():
    _probes = "codegen_app.site.probes.ProbesMiddleware"
    MIDDLEWARE.insert(
        MIDDLEWARE.index(_probes) + 1, "codegen_app.web.server.traces.TracesMiddleware"
    )
if READ_NEEDS_LOGIN:
    MIDDLEWARE.append("codegen_app.accounts.login_redirect.LoginMiddleware")
# Last, so that its responses while logins are stopped pass through all the others.
MIDDLEWARE += ["codegen_app.web.middleware.HashingMiddleware", "axes.middleware.AxesMiddleware"]

ROOT_URLCONF = "codegen_app.urls"
WSGI_APPLICATION = "codegen_app.platform.config.wsgi.application"

_TEMPLATE_TAGS = {
    "web": ("effects", "kiln", "navigation", "nodes", "tables"),
    "tuning": ("explorer", "measured"),
    "tracking": ("alerts", "comparing", "tracking"),
}
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [LAYOUT.site / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "libraries": {
                name: f"codegen_app.{subject}.templatetags.{name}"
                for subject, names in _TEMPLATE_TAGS.items()
                for name in names
            },
        },
    },
]

DATABASES = {
    "default": {
        **env.database(env.text("DATABASE_URL") or cluster_for(VAR_DIR).url("kiln")),
        # Connections are reused between requests, and checked first: the database may have
        # restarted.
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }
}

# The cache of rendered pages in each web process; 0 renders every page anew.
PAGES_KEPT_BYTES = env.integer("KILN_PAGES_KEPT_MIB", 64) * 1024 * 1024

# The numbers in the bar of every page, as text: open regressions and running tuning runs.
BAR_COUNTS = {
    "alerts": "codegen_app.tracking.queries.alert_rows.open_regressions_label",
    "runs": "codegen_app.tuning.queries.running.running_label",
}

# What the web server loads before it forks its processes.
PRELOAD = "codegen_app.site.preload.preload_pages"

# The time limit of a search per kind of result, in milliseconds.
SEARCH_MS = env.integer("KILN_SEARCH_MS", 250, minimum=10)

LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/"
# People who sign in with the organisation's provider need no password here; with passwords
# disabled, nobody does.
OIDC = sign_in.provider()
PASSWORD_LOGIN = env.flag("KILN_PASSWORD_LOGIN", default=True)
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend"]
if PASSWORD_LOGIN:
    AUTHENTICATION_BACKENDS.append("django.contrib.auth.backends.ModelBackend")
if OIDC is not None:
    AUTHENTICATION_BACKENDS.append("codegen_app.accounts.backends.IdentityBackend")
PASSWORD_HASHERS = ["codegen_app.accounts.hashing.BoundedPBKDF2PasswordHasher"]
# Length is what resists guessing; there are no rules of composition. The longest hashed password is
# the form's limit (4096 characters).
_VALIDATION = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{_VALIDATION}.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": f"{_VALIDATION}.UserAttributeSimilarityValidator"},
    {"NAME": f"{_VALIDATION}.CommonPasswordValidator"},
]
AXES_HANDLER = "codegen_app.accounts.throttle.Throttle"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "ip_address", "username"]
AXES_FAILURE_LIMIT = 100  # of the handler's weighted count
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_DISABLE_ACCESS_LOG = True  # the audit log has it
AXES_VERBOSE = False
AXES_CLIENT_IP_CALLABLE = "codegen_app.accounts.origin.client_address"
AXES_LOCKOUT_CALLABLE = "codegen_app.accounts.throttle.lockout_response"

# Changes that were older than this many days when they were found are history, without messages; 0:
# none are. Alerts that have been back at the previous level for so many days are closed as fixed.
HISTORY_DAYS = env.integer("KILN_HISTORY_DAYS", 14)
RECOVERED_DAYS = env.integer("KILN_RECOVERED_DAYS", 7, minimum=1)
# A folder with bare Git repositories, from which the commits of alerts are read.
GIT_MIRRORS = env.folder("KILN_GIT_MIRRORS", VAR_DIR) if env.text("KILN_GIT_MIRRORS") else None
# By repository: how workers build and measure revisions that bisections request.
BISECT_COMMANDS = bisect_commands.read(
    env.folder("KILN_BISECT", VAR_DIR) if env.text("KILN_BISECT") else None
)

# So many suspected steps an hour are measured again without anybody's request; 0: none are.
SUSPICIONS_AN_HOUR = env.integer("KILN_SUSPICIONS_AN_HOUR", 10)

# The audit log is kept for this many days.
AUDIT_DAYS = env.integer("KILN_AUDIT_DAYS", 400, minimum=30)

LANGUAGE_CODE = "en-gb"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
# The admin's format of full timestamps.
DATETIME_FORMAT, DATE_FORMAT = "Y-m-d H:i:s", "Y-m-d"

STATIC_URL = "static/"
STATICFILES_DIRS = [LAYOUT.site / "static"]
STATIC_ROOT = VAR_DIR / "static"
MEDIA_ROOT = VAR_DIR / "artifacts"
STORAGES = {
    "default": storage.artifacts(),
    "staticfiles": {"BACKEND": "codegen_app.platform.config.static.HashedStorage"},
}

# A message's class in the style sheet.
MESSAGE_TAGS = {
    levels.INFO: "ok",
    levels.SUCCESS: "ok",
    levels.WARNING: "warn",
    levels.ERROR: "bad",
}

# The limit of an imported file: larger files are rejected before they are read.
GRAPH_FILE_MAX_BYTES = env.integer("KILN_GRAPH_FILE_MAX_BYTES", 512 * 1024 * 1024, minimum=1)
# Time limits for reading a file, for preparing its kernels, and for comparing it with torch;
# beyond, it is rejected.
IMPORT_MAX_S = env.integer("KILN_IMPORT_MAX_S", 60, minimum=1)
PREPARE_MAX_S = env.integer("KILN_PREPARE_MAX_S", 300, minimum=1)
IMPORT_MAX_MEMORY_BYTES = env.integer("KILN_IMPORT_MAX_MEMORY_BYTES", 4 << 30, minimum=1 << 28)
# Limits of an external kernel: its file, and its modelling.
FOREIGN_KERNEL_MAX_BYTES = env.integer("KILN_FOREIGN_KERNEL_MAX_BYTES", 32 << 20, minimum=1)
FOREIGN_KERNEL_SECONDS = env.integer("KILN_FOREIGN_KERNEL_SECONDS", 300, minimum=1)
FOREIGN_KERNEL_MEMORY_BYTES = 4 << 30
SELECTIONS_FILE_MAX_BYTES = 16 * 1024 * 1024
# Results that are sent with a token: the size of one request, and the rate of each token.
API_BODY_MAX_BYTES = env.integer("KILN_API_BODY_MAX_BYTES", 32 * 1024 * 1024, minimum=1024)
API_REQUESTS_A_MINUTE = env.integer("KILN_API_REQUESTS_A_MINUTE", 120, minimum=1)
API_POINTS_A_MINUTE = env.integer("KILN_API_POINTS_A_MINUTE", 120_000, minimum=10_000)
# Workers without the database: requests per token, and how often an idle worker polls.
WORKER_REQUESTS_A_MINUTE = env.integer("KILN_WORKER_REQUESTS_A_MINUTE", 1200, minimum=1)
WORKER_POLL_S = float(env.integer("KILN_WORKER_POLL_S", 2, minimum=1))
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "codegen_app.web.server.bodies.PlainTemporaryFileHandler",
]
DATA_UPLOAD_MAX_NUMBER_FIELDS = 500  # the admin's selectable rows, and some more
DATA_UPLOAD_MAX_NUMBER_FILES = 2

# What is allowed if a required part of the sandbox is missing: everything but reading uploads,
# nothing, or everything.
FENCE = env.choice("KILN_FENCE", (sandbox.AVAILABLE, sandbox.REQUIRED, sandbox.OPTIONAL))
if FENCE == sandbox.REQUIRED:
    sandbox.require_sandbox()

# The engine's cache of compiled code and of the cases it measures.
CODE_CACHE_DIR = env.folder("KILN_CODE_CACHE", VAR_DIR / "code-cache")
# All processes that measure on this host must use the same folder: a device has one user at a time.
DEVICE_LOCKS_DIR = env.folder("KILN_DEVICE_LOCKS", VAR_DIR / "device-locks")
ROCM_PATH = env.text("ROCM_PATH")
COMPILER_PATH = env.text("PATH")  # where compilers of the system are searched

# A login ends after this long without use, and this long after it began.
SESSION_IDLE_S = env.integer("KILN_SESSION_IDLE_S", 2 * 3600, minimum=60)
SESSION_COOKIE_AGE = env.integer("KILN_SESSION_S", 12 * 3600, minimum=60)
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"  # a link in a mail opens its page
CSRF_FAILURE_VIEW = "codegen_app.web.errors.csrf_failure"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DEFAULT_EXCEPTION_REPORTER_FILTER = "codegen_app.platform.config.redaction.SecretsFilter"
# The number of our proxies before the server; what they say about a client is trusted.
TRUSTED_PROXIES = env.integer("KILN_TRUSTED_PROXIES", 0)
HTTPS = env.flag("KILN_HTTPS", default=False)
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = env.integer("KILN_HSTS_S", 365 * 24 * 3600)
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    # Browsers' built-in lists hold whole domains, for years: a domain's owner may request that, not
    # one of its sites.
    SILENCED_SYSTEM_CHECKS = ["security.W021"]
    # For this host alone, by HTTPS alone, for the whole site: browsers enforce this for the prefix.
    SESSION_COOKIE_NAME = "__Host-sessionid"
    CSRF_COOKIE_NAME = "__Host-csrftoken"
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True

# A message only says "look now": the rows are the truth, so no results are stored, and the periodic
# round makes up for a lost message (codegen_app/site/periodic.py).
CELERY_BROKER_URL = env.broker("KILN_BROKER_URL", transport.DEFAULT_URL)
# A sender waits this long for an unavailable broker, not for ever; a worker waits without limit.
CELERY_BROKER_TRANSPORT_OPTIONS = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # an unavailable broker comes back some time
# RabbitMQ's heartbeat: a worker is silent while it works, for longer than any heartbeat. Its
# liveness is in the rows, and TCP notices a dead connection.
CELERY_BROKER_HEARTBEAT = 0
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A worker is one process that works on one row at a time: no pool whose children can die unseen.
CELERY_WORKER_POOL = "solo"
CELERY_WORKER_CONCURRENCY = 1
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True  # none is acknowledged late
CELERY_WORKER_ENABLE_REMOTE_CONTROL = (
    False  # who works on what is in the rows; nothing is broadcast
)
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"

# Whether workers automatically model the selected kernels where most of the time goes.
MODEL_AUTOMATICALLY = env.flag("KILN_MODEL", default=True)
# Whether workers that have torch compare imported graphs with it.
COMPARE_WITH_TORCH = env.flag("KILN_TORCH", default=True)

# Retention: compiled code that can be built again up to a size (bytes, per host), finished runs and
# builds that nothing needs for this many days (0: for ever), and bundles that workers packed.
CODE_CACHE_MAX_BYTES = env.integer("KILN_CODE_CACHE_MAX_BYTES", 20 * 2**30, minimum=2**20)
KEEP_RUNS_DAYS = env.integer("KILN_KEEP_RUNS_DAYS", 0)
KEEP_BUNDLES_DAYS = env.integer("KILN_KEEP_BUNDLES_DAYS", 3, minimum=1)
KEEP_FOREIGN_KERNELS_DAYS = env.integer("KILN_KEEP_FOREIGN_KERNELS_DAYS", 30, minimum=1)
KEEP_BUILDS_DAYS = env.integer("KILN_KEEP_BUILDS_DAYS", 0)

# A page that would wait longer for a lock, or for its own query, reports that it is busy.
WEB_LOCK_TIMEOUT_S = env.integer("KILN_WEB_LOCK_TIMEOUT_S", 3, minimum=1)
WEB_STATEMENT_TIMEOUT_S = env.integer("KILN_WEB_STATEMENT_TIMEOUT_S", 30, minimum=1)

# A worker keeps its lease alive while it works; without a heartbeat for this long the row is
# requeued.
WORK_LEASE_S = env.integer("KILN_WORK_LEASE_S", 60, minimum=1)
# Deaths of processes before a row is quarantined, if the processes die only over it.
WORK_DEATHS_ALLOWED = 10
# The pause after a machine failure; it doubles each time, up to five minutes.
WORK_RETRY_S = env.integer("KILN_WORK_RETRY_S", 5, minimum=1)
# Processes of a run of modelled times (0: one per core), and seconds per candidate.
MODEL_PROCESSES = env.integer("KILN_MODEL_PROCESSES", 0, minimum=0)
MODEL_LIMIT_S = env.integer("KILN_MODEL_LIMIT_S", 60, minimum=1)
WAKE_AT_MOST = env.integer("KILN_WAKE_AT_MOST", 8, minimum=1)  # messages per event

# Absolute URLs begin with this and never with a request's Host, which the client chooses.
SITE_URL = env.site("KILN_SITE_URL")
# Webhooks may go to public addresses, and into these networks.
WEBHOOK_NETWORKS = env.networks("KILN_WEBHOOK_NETWORKS")
EMAIL_HOST = env.text("KILN_EMAIL_HOST")
EMAIL_SECURITY = env.choice("KILN_EMAIL_SECURITY", ("starttls", "tls", "none"))
EMAIL_USE_TLS, EMAIL_USE_SSL = EMAIL_SECURITY == "starttls", EMAIL_SECURITY == "tls"
EMAIL_PORT = env.integer(
    "KILN_EMAIL_PORT", {"starttls": 587, "tls": 465, "none": 25}[EMAIL_SECURITY], minimum=1
)
EMAIL_HOST_USER = env.text("KILN_EMAIL_USER")
EMAIL_HOST_PASSWORD = env.text("KILN_EMAIL_PASSWORD")
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.text("KILN_EMAIL_FROM", "kiln@localhost")

# Who may read /metrics: clients with the token, or from these networks. Without either it is off.
METRICS_TOKEN = env.token("KILN_METRICS_TOKEN", least=24)
METRICS_NETWORKS = env.networks("KILN_METRICS_NETWORKS")

LOG_FORMAT = env.choice("KILN_LOG_FORMAT", env.LOG_FORMATS)
if LOG_FORMAT == "json":
    logging.captureWarnings(True)  # otherwise these lines have another format

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "codegen_app.platform.config.logs.LineFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
        },
        "json": {"()": "codegen_app.platform.config.logs.JsonFormatter"},
    },
    "filters": {"one line": {"()": "codegen_app.web.errors.OneLineFilter"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": {"text": "line", "json": "json"}[LOG_FORMAT],
            "filters": ["one line"],
        }
    },
    "loggers": {
        "axes": {"level": "ERROR"},  # the audit log has it in our format
        # A message only says "look now": receiving one, and finding nothing, is not worth a line.
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
    },
    "root": {"handlers": ["stderr"], "level": env.text("KILN_LOG_LEVEL", "INFO")},
}
