"""A backup taken during a run restores to a state that completes; anything less is refused."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import Build
from codegen_app.platform import artifacts, postgres
from codegen_app.platform.models import Artifact
from codegen_app.platform.postgres import Cluster, programs, server
from codegen_app.tuning.models import TuningRun
from codegen_app.tuning.services import run_requests
from codegen_app.workers.models import State
from scheduler import samples
from scheduler.runtime.lock import lock_device
from tests.app.installations import BROKER, Installation
from tests.app.workers.test_real_workers import Workers
from tests.support import leases


@pytest.mark.long
def test_a_backup_of_a_run_under_way_restores_to_one_that_completes(
    here: Installation, there: Installation, tmp_path: Path
) -> None:
    graph, _ = graphs.import_graph(samples.path("llama_2layer"), "llama", [], None)
    sizes = {name: max(2, info["min"]) for name, info in graph.symbols.items()}
    run_requests.start_run(graph, "cpu", "cpu", sizes, None, kinds=["gemm"], candidate_limit=1)
    workers = Workers(tmp_path, BROKER)
    with lock_device("cpu", tmp_path / "device-locks"):  # so that it is not over before the backup
        workers.start()
        try:
            workers.wait(Build.objects.filter(state=State.RUNNING).exists, "build begun")
            done = here.manage("backup", tmp_path / "backup")
        finally:
            workers.kill()
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""

    restored = there.manage("restore", tmp_path / "backup")
    assert restored.returncode == 0, restored.stderr
    assert there.value("SELECT count(*) FROM codegen_app_graph") == 1
    assert there.value("SELECT state FROM codegen_app_tuningrun") != State.DONE
    with psycopg.connect(there.url, autocommit=True) as made:
        leases.expire_all(lambda statement: made.execute(statement.encode()))
    goes_on = Workers(there.var, BROKER, DATABASE_URL=there.url)
    goes_on.start()
    state = "SELECT state FROM codegen_app_tuningrun"
    try:
        goes_on.wait(lambda: there.value(state) == State.DONE, "end of the run")
    finally:
        goes_on.kill()
    assert there.value("SELECT count(*) FROM codegen_app_benchmarkresult") > 3  # type: ignore[operator]
    assert not TuningRun.objects.filter(state=State.DONE).exists(), "only the other went on"


@pytest.mark.full
def test_a_second_backup_copies_what_is_new(here: Installation, tmp_path: Path) -> None:
    first = artifacts.store(b"first", ".so")
    folder = tmp_path / "backup"
    assert here.manage("backup", folder).returncode == 0
    copy = folder / "artifacts" / first.path
    before = copy.stat()
    second = artifacts.store(b"second", ".s")
    assert here.manage("backup", folder).returncode == 0
    assert copy.stat().st_mtime_ns == before.st_mtime_ns
    assert (folder / "artifacts" / second.path).is_file()
    assert json.loads((folder / "backup.json").read_text())["artifacts"] == 2


@pytest.mark.full
def test_what_the_storage_lost_is_named(here: Installation, tmp_path: Path) -> None:
    lost = artifacts.store(b"lost", ".so")
    (tmp_path / "artifacts" / lost.path).unlink()
    done = here.manage("backup", tmp_path / "backup")
    assert done.returncode == 0
    assert done.stderr == f"artifact {lost.digest} is missing from the storage\n"


@pytest.mark.full
def test_what_is_not_whole_or_not_empty_is_refused_in_a_line(
    here: Installation, there: Installation, tmp_path: Path
) -> None:
    kept = artifacts.store(b"kept", ".so")
    folder = tmp_path / "backup"
    assert here.manage("backup", folder).returncode == 0

    done = here.manage("restore", folder)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "has tables already: restore into an empty one" in done.stderr

    def refused(change: str) -> str:
        done = there.manage("restore", broken)
        assert done.returncode == 1, change
        assert done.stderr.count("\n") == 1, done.stderr
        assert there.value("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
        shutil.rmtree(broken)
        shutil.copytree(folder, broken)
        return done.stderr

    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    (broken / "backup.json").unlink()
    assert "no whole backup: it has no backup.json" in refused("interrupted")
    (broken / "artifacts" / kept.path).write_bytes(b"else")
    assert "is damaged: its content is not that of its name" in refused("damaged")
    (broken / "artifacts" / kept.path).unlink()
    assert "has 0 of 1 artifacts" in refused("lost")
    manifest = json.loads((broken / "backup.json").read_text())
    manifest["migrations"].append("codegen_app.9999_of_tomorrow")
    (broken / "backup.json").write_text(json.dumps(manifest))
    assert "taken by a newer Kiln" in refused("newer")
    (broken / "database.dump").write_bytes(b"no dump")
    assert "pg_restore" in refused("no dump")
    assert there.manage("restore", broken).returncode == 0
    assert there.value("SELECT digest FROM codegen_app_artifact") == kept.digest
    assert Artifact.objects.count() == 1


def change_of_rows(statement: str) -> Callable[[Installation, Path], None]:
    """A dump of a site in whose database somebody did something."""

    def change(site: Installation, folder: Path) -> None:
        with psycopg.connect(site.url, autocommit=True) as database:
            database.execute(statement.encode())
        (folder / "backup.json").unlink()
        shutil.rmtree(folder)
        assert site.manage("backup", folder).returncode == 0

    return change


def copy_from_a_program(_: Installation, folder: Path) -> None:
    """The statement that an archive holds for a table's rows, changed in its bytes."""
    dump = folder / "database.dump"
    content = dump.read_bytes()
    longest = max(re.findall(rb"COPY public\.\w+ \([^)]*\) FROM stdin;", content), key=len)
    table = longest.split()[1].decode()
    program = f"COPY {table} FROM PROGRAM 'touch {folder}/ran';".encode()
    assert len(program) <= len(longest), "an archive's texts have their lengths before them"
    dump.write_bytes(content.replace(longest, program.ljust(len(longest))))


def without_migration(name: str) -> Callable[[Installation, Path], None]:
    """A backup whose list of migrations lacks this one."""

    def change(_: Installation, folder: Path) -> None:
        manifest = json.loads((folder / "backup.json").read_text())
        manifest["migrations"].remove(name)
        (folder / "backup.json").write_text(json.dumps(manifest))

    return change


HOSTILE: dict[str, tuple[Callable[[Installation, Path], None], str]] = {
    "a program": (copy_from_a_program, "holds more than the rows of Kiln's tables"),
    "a table": (change_of_rows("CREATE TABLE extra (id int)"), "a table that Kiln has not: extra"),
    "a column": (
        change_of_rows("ALTER TABLE codegen_app_artifact ADD COLUMN more int"),
        "codegen_app_artifact has other columns than Kiln's",
    ),
    "a type": (
        change_of_rows(
            "ALTER TABLE auth_user_groups DISABLE TRIGGER ALL;"
            "ALTER TABLE auth_user_groups ALTER id DROP IDENTITY;"
            "ALTER TABLE auth_user_groups ALTER id TYPE text;"
            "INSERT INTO auth_user_groups VALUES ('x', 1, 1)"
        ),
        "invalid input syntax for type ",
    ),
    "a reference": (
        change_of_rows(
            "ALTER TABLE auth_user_groups DISABLE TRIGGER ALL;"
            "INSERT INTO auth_user_groups (user_id, group_id) VALUES (4711, 4711)"
        ),
        "violates foreign key constraint",
    ),
    "a sequence": (change_of_rows("CREATE SEQUENCE extra"), "a sequence that Kiln has not: extra"),
    "migrations": (
        without_migration("auth.0005_alter_user_last_login_null"),
        "migrations that follow auth.0005_alter_user_last_login_null",
    ),
    "old migrations": (
        without_migration("codegen_app.0050_accounted"),
        "the backup has 47 of the 48 migrations up to codegen_app.0050_accounted: upgrade first",
    ),
}


@pytest.mark.long(but=["a program", "old migrations"])
@pytest.mark.full
@pytest.mark.parametrize("name", HOSTILE)
def test_a_backup_that_somebody_changed_is_refused_and_runs_nothing(
    name: str, here: Installation, there: Installation, tmp_path: Path
) -> None:
    site, folder = there, tmp_path / "backup"
    assert here.manage("backup", folder).returncode == 0
    change, line = HOSTILE[name]
    if name not in ("a program", "migrations", "old migrations"):
        # Somebody's own installation, of which the backup is.
        assert site.manage("restore", folder).returncode == 0
    change(site, folder)
    with empty_beside(there) as target:
        done = target.manage("restore", folder)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1, done.stderr
        assert line in done.stderr
        assert target.value(LEFT) == 0, "as empty as before"
    assert not (folder / "ran").exists()


@pytest.mark.full
def test_what_a_backup_would_execute_is_not(
    here: Installation, there: Installation, tmp_path: Path
) -> None:
    """Definitions of whoever made it (functions, triggers, defaults) stay behind; its rows come."""
    folder = tmp_path / "backup"
    assert here.manage("backup", folder).returncode == 0
    assert there.manage("restore", folder).returncode == 0
    change_of_rows(
        "INSERT INTO auth_group (name) VALUES ('mine');"
        "CREATE FUNCTION evil() RETURNS trigger LANGUAGE plpgsql AS $$"
        " BEGIN COPY (SELECT 1) TO PROGRAM 'touch ran'; RETURN NEW; END $$;"
        "CREATE TRIGGER evil BEFORE INSERT ON auth_group FOR EACH ROW EXECUTE FUNCTION evil();"
        "ALTER TABLE auth_group ENABLE ALWAYS TRIGGER evil"
    )(there, folder)
    with empty_beside(there) as target:
        done = target.manage("restore", folder)
        assert (done.returncode, done.stderr) == (0, "")
        assert target.value("SELECT count(*) FROM auth_group WHERE name = 'mine'") == 1
        evil = "SELECT count(*) FROM pg_proc WHERE proname = 'evil'"
        assert (there.value(evil), target.value(evil)) == (1, 0)
        roles = "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'kiln_restore%'"
        assert target.value(roles) == 0
        assert target.manage("migrate", "--check").returncode == 0


LEFT = (
    "SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace)"
    " + (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace)"
)


@contextmanager
def empty_beside(site: Installation) -> Iterator[Installation]:
    """Another installation on the same server, with nothing in it."""
    parts = urlsplit(site.url)
    name = f"{parts.path[1:]}_2"
    admin = urlunsplit(parts._replace(path="/postgres"))
    with psycopg.connect(admin, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield Installation(site.var, urlunsplit(parts._replace(path=f"/{name}")))
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A server of the major version before the newest."""
    folder = tmp_path_factory.mktemp("older")
    cluster = postgres.cluster_for(folder)
    try:
        postgres.prepare(cluster)
        installed = programs.folder(cluster, list(programs.versions())[-2])
        command = (installed / "initdb", "--auth=trust", "--username=postgres", "-D", cluster.data)
        programs.run(cluster, command, "no older server")
        server.launch(cluster, installed, cluster.data, ("fsync=off",))
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
            for name in ("kiln", "restored"):
                connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        yield cluster
    finally:
        postgres.remove(folder)


@pytest.mark.long
def test_an_older_server_is_backed_up_and_restored_by_programs_that_fit(
    older: Cluster, tmp_path: Path
) -> None:
    """A newer pg_restore sets what an older server does not know."""
    site = Installation(tmp_path / "site", older.url("kiln"))
    assert site.manage("migrate", "--noinput").returncode == 0
    done = site.manage("backup", tmp_path / "backup")
    assert (done.returncode, done.stderr) == (0, "")
    empty = Installation(tmp_path / "restored", older.url("restored"))

    kept, file = tmp_path / "kept", tmp_path / "backup" / "database.dump"
    file.rename(kept)
    newest = programs.versions()[max(programs.versions())] / "bin" / "pg_dump"
    subprocess.run([newest, "--format=custom", f"--file={file}", older.url("kiln")], check=True)
    refused = empty.manage("restore", tmp_path / "backup")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1), refused.stderr
    assert "this backup is of a newer PostgreSQL than the server" in refused.stderr
    kept.replace(file)

    restored = empty.manage("restore", tmp_path / "backup")
    assert (restored.returncode, restored.stderr) == (0, ""), restored.stderr
    count = "SELECT count(*) FROM django_migrations"
    assert empty.value(count) == site.value(count)


@pytest.mark.full
def test_a_folder_with_something_else_is_left_alone(here: Installation, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    done = here.manage("backup", tmp_path / "home")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "holds something else than a backup" in done.stderr
    assert [file.name for file in (tmp_path / "home").iterdir()] == ["letter.txt"]
