"""Who may do what, at every address and with every method; and how much may be sent, by whom."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.test import Client, RequestFactory
from django.urls import get_resolver, resolve
from django.urls.resolvers import URLResolver

from codegen_app.accounts import permissions
from codegen_app.accounts.permissions import (
    BUILD,
    IMPORT,
    NOTIFY,
    RETUNE,
    SELECT,
    TOKENS,
    TRIAGE,
    WORKERS,
)
from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.site.urls import urlpatterns
from codegen_app.tuning.models import Selection, TuningRun
from codegen_app.web.server import bodies, rules
from tests.support.pages_world import World

pytestmark = pytest.mark.django_db

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
READ = ("GET", "HEAD")
# Every address of the application: the methods that it answers, and the permission they need.
# "" is a page to read, LOGIN needs an account, ANYBODY not even that.
LOGIN, ANYBODY = "login", "anybody"
TABLE: dict[str, tuple[tuple[str, ...], str]] = {
    **{
        name: (READ, "")
        for page in (
            *("overview", "graphs", "graph", "template_node", "kernels", "kernel", "tuning_runs"),
            *("tuning_run", "selections", "devices", "compare", "search", "glossary", "packing"),
            *("compare_revisions", "ops", "foreign_kernel", "figures"),
            *("series_list", "series", "series_point", "change"),
            *("alert_actions", "api_docs", "header", "instruction"),
            *("alerts", "alert", "thresholds", "rules", "rule", "team", "budget"),
        )
        for name in (page, f"{page}_json")
    },
    **dict.fromkeys(
        (
            *("kernel_bundle", "graph_bundle", "kernel_lines", "kernel_index", "kernel_download"),
            "packed_bundle",
            *("run_ledger", "run_log", "export_selections", "components", "kernel_source"),
            *("api_schema", "api_client", "compare_revisions_md", "palette"),
            *("series_csv", "series_points", "modelled_report"),
            *("foreign_listing", "foreign_report", "tour"),
        ),
        (READ, ""),
    ),
    **dict.fromkeys(("series_plot", "series_badge"), (READ, ANYBODY)),  # with the picture's key
    **dict.fromkeys(("import", "look"), ((*READ, "POST"), IMPORT)),
    **dict.fromkeys(("import_json", "look_json"), (READ, IMPORT)),
    **dict.fromkeys(("recognize_file", "cancel_preparation"), (("POST",), IMPORT)),
    "import_selections": (("POST",), SELECT),
    **dict.fromkeys(("put_back", "put_back_run"), (("POST",), SELECT)),
    "cancel_run": (("POST",), RETUNE),
    "retune": ((*READ, "POST"), RETUNE),
    "retune_json": (READ, RETUNE),
    **dict.fromkeys(("bisect_alert", "cancel_bisection", "skip_revision"), (("POST",), RETUNE)),
    **dict.fromkeys(
        ("retune_alert", "remeasure_alert", "withdraw_requests", "cancel_remeasurement"),
        (("POST",), RETUNE),
    ),
    **dict.fromkeys(("build_kernel", "model_kernel", "cancel_modelling"), (("POST",), BUILD)),
    "pack": ((*READ, "POST"), ANYBODY),  # asking needs an account
    **dict.fromkeys(("cancel_packing", "cancel_foreign_kernel"), (("POST",), LOGIN)),
    "password": ((*READ, "POST"), LOGIN),
    "csp_reports": (("POST",), ANYBODY),
    "tokens": ((*READ, "POST"), TOKENS),
    "tokens_json": (READ, TOKENS),
    "revoke_token": (("POST",), TOKENS),
    **dict.fromkeys(("channels", "channel"), ((*READ, "POST"), NOTIFY)),
    **dict.fromkeys(("channels_json", "channel_json"), (READ, NOTIFY)),
    **dict.fromkeys(
        ("switch_channel", "test_channel", "renew_channel_key", "send_again"), (("POST",), NOTIFY)
    ),
    "steer_worker": (("POST",), WORKERS),
    "alerts_feed": (READ, ANYBODY),  # the view asks for a login or a token
    **dict.fromkeys(
        (
            *("triage", "undo_triage", "save_thresholds", "add_baseline", "remove_baseline"),
            *("save_rule", "move_rule", "remove_rule", "import_owners"),
            *("add_budget", "save_budget", "remove_budget"),
            *("withdraw_point", "restore_point", "annotate_point", "remove_annotation"),
        ),
        (("POST",), TRIAGE),
    ),
    # By a token, which the views ask for.
    **dict.fromkeys(
        (
            *("api_results", "api_withdraw", "api_restore", "api_annotate"),
            *("api_remove_annotation", "api_reset_thresholds", "api_triage"),
            *("api_try_rule", "api_edit_rule", "api_move_rule", "api_remove_rule"),
            "api_skip_request",
        ),
        (("POST",), ANYBODY),
    ),
    **dict.fromkeys(("api_thresholds", "api_rules"), (("GET", "POST"), ANYBODY)),
    **dict.fromkeys(
        (
            *("api_worker_hello", "api_worker_lease", "api_worker_builds"),
            *("api_worker_progress", "api_worker_finish"),
            *("api_worker_give_up", "api_worker_leave"),
        ),
        (("POST",), ANYBODY),
    ),
    "api_worker_file": (("GET",), ANYBODY),
    **dict.fromkeys(
        (
            *("api_series", "api_one_series", "api_data", "api_requests", "api_compare"),
            *("api_alerts", "api_alert", "api_alert_changes", "api_alert_events"),
            *("api_annotations", "api_budgets"),
        ),
        (("GET",), ANYBODY),
    ),
}
ROLES = ("anonymous", "plain", *permissions.TITLES, "admin")


def test_every_address_is_in_the_table() -> None:
    """An address that is added says here who may do what with it."""
    assert {pattern.name for pattern in urlpatterns} == set(TABLE)
    ours = {name for name in rules.RULES if name not in ("login", "logout")}
    assert ours <= set(TABLE)
    for name, (methods, permission) in TABLE.items():
        rule = rules.RULES.get(name, rules.PAGE)
        assert set(rule.methods) == set(methods), name
        assert rule.permission == (permission if "." in permission else ""), name


def account(role: str) -> Any:
    if role == "anonymous":
        return AnonymousUser()
    user = User.objects.create_user(role, is_superuser=role == "admin")
    if "." in role:
        user.user_permissions.add(Permission.objects.get(codename=role.partition(".")[2]))
    return user


def addresses(world: World) -> dict[str, str]:
    """An address of each name with rows that are there."""
    kernel = world.kernels[0]
    build = kernel.builds.get(target="gfx942")
    pk = {
        **dict.fromkeys(("graph", "graph_json", "graph_bundle"), world.graph.pk),
        **dict.fromkeys(("template_node", "template_node_json"), world.nodes[0].pk),
        "put_back": Selection.objects.get().pk,
    }
    found = {}
    for pattern in urlpatterns:
        given = {"name": kernel.name, "build": build.pk, "first": 1, "file": "source.hip"}
        given["pk"], given["datum"] = pk.get(pattern.name, world.run.pk), 1
        given["annotation"] = 1
        given |= {"key": "0" * 32, "digest": "0" * 64, "step": 1}
        given |= {"target": "gfx942", "mnemonic": "s_nop"}
        if pattern.name == "kernel_download":
            given["file"] = "kernel.so"
        wanted = {key: given[key] for key in pattern.pattern.converters}
        found[pattern.name] = "/" + pattern.pattern._route
        for key, value in wanted.items():
            kinds = ("int", "slug", "str", "path")
            kind = next(k for k in kinds if f"<{k}:{key}>" in found[pattern.name])
            found[pattern.name] = found[pattern.name].replace(f"<{kind}:{key}>", str(value))
    return found


def test_the_matrix_of_addresses_methods_and_roles(world: World, rf: RequestFactory) -> None:
    """What is refused, and how, before any view or parser of bodies is asked."""
    middleware = rules.RulesMiddleware(lambda request: None)
    users = {role: account(role) for role in ROLES}
    tried = 0
    for name, address in addresses(world).items():
        methods, permission = TABLE[name]
        for method in METHODS:
            for role, user in users.items():
                request = rf.generic(method, address)
                request.user, request.resolver_match = user, resolve(address)
                try:
                    answer = middleware.process_view(request, None, (), {})
                    status = 200 if answer is None else answer.status_code
                except rules.PermissionDenied as refused:
                    assert permissions.TITLES[permission] in str(refused)
                    status = 403
                allowed = "." not in permission or role in (permission, "admin")
                to_login = 401 if address.endswith(".json") else 302
                expected = 200 if allowed else to_login if role == "anonymous" else 403
                due = expected if method in methods else 405
                assert status == due, (name, method, role)
                tried += 1
    assert tried == len(TABLE) * len(METHODS) * len(ROLES)


def test_changes_need_their_permission_through_the_whole_site(client: Client, world: World) -> None:
    """The middleware is in its place, and the views ask again."""
    places = addresses(world)
    changing = {n: row[1] for n, row in TABLE.items() if "." in row[1] and "POST" in row[0]}
    for name in changing:
        answer = client.post(places[name])
        assert (answer.status_code, answer.headers["Location"][:8]) == (302, "/login/?"), name
    client.force_login(account("plain"))
    before = [model.objects.count() for model in (Graph, Build, TuningRun, Selection)]
    for name, permission in changing.items():
        answer = client.post(places[name])
        assert answer.status_code == 403, name
        assert permissions.TITLES[permission] in answer.content.decode(), name
    assert [model.objects.count() for model in (Graph, Build, TuningRun, Selection)] == before
    for method in ("put", "delete", "trace", "options", "patch", "post"):
        for name in ("graph", "overview_json", "kernel_source", "run_log"):
            assert getattr(client, method)(places[name]).status_code == 405, (method, name)
    for method in ("put", "delete", "trace"):
        assert getattr(client, method)("/login/").status_code == 405


def test_the_views_ask_for_the_permission_too(world: World, rf: RequestFactory) -> None:
    user = account("plain")
    for name, address in addresses(world).items():
        if "." in TABLE[name][1]:
            request, found = rf.post(address), resolve(address)
            request.user = user
            with pytest.raises(rules.PermissionDenied):
                found.func(request, *found.args, **found.kwargs)


def test_a_login_is_no_token(client: Client) -> None:
    """Operations of programs answer nobody without a token, an administrator neither."""
    tried = 0
    for role in ("anonymous", "admin"):
        if role == "admin":
            client.force_login(account(role))
        for _, name, address in all_addresses():
            if name.startswith("api_") and TABLE[name][1] == ANYBODY:
                for method in TABLE[name][0]:
                    assert client.generic(method, address).status_code == 401, (method, address)
                    tried += 1
    assert tried >= 20


# What anybody may ask for: to log in, and Django's redirects to that.
_ELSEWHERE = ("/login/", "/admin/", "/password")  # of one's own account
_OPEN = {"login", "logout", "sign_in", "signed_in", ""}
# Of the admin, what staff sees whatever it may do; the pages of rows ask for their permission.
_OF_STAFF = {"index", "login", "logout", "password_change", "password_change_done", "jsi18n"}


def all_addresses() -> Iterator[tuple[str, str, str]]:
    """Namespace, name and an address of every pattern that the site has, from its resolver."""

    def walk(found: Any, before: str, namespace: str) -> Iterator[tuple[str, str, str]]:
        for one in found:
            route = before + str(one.pattern)
            if isinstance(one, URLResolver):
                yield from walk(one.url_patterns, route, one.namespace or namespace)
            else:
                yield namespace, one.name or "", "/" + _filled(route)

    yield from walk(get_resolver().url_patterns, "", "")


def _filled(route: str) -> str:
    route = re.sub(r"\(\?P<app_label>(\w+)[^)]*\)", r"\1", route)
    route = re.sub(r"\(\?P<\w+>[^)]*\)", "x", route)
    route = re.sub(r"<int:\w+>", "1", route)
    return (
        re.sub(r"<(?:\w+:)?\w+>", "a", route).replace("^", "").replace("$", "").replace("\\Z", "")
    )


def is_allowed(role: str, namespace: str, name: str, method: str) -> bool:
    """By the table; of the admin staff has what asks for no permission."""
    if namespace == "admin":
        return role == "admin" or (role == "staff" and name in _OF_STAFF)
    if name in _OPEN:
        return True
    methods, permission = TABLE[name]
    if method not in methods:
        return False
    if permission in ("", LOGIN):
        return role != "anonymous"
    return permission == ANYBODY or role in (permission, "admin")


@pytest.mark.long(but=["anonymous", "staff"])
@pytest.mark.full
@pytest.mark.parametrize("role", [*ROLES, "staff"])
def test_nothing_is_open_that_should_not_be(role: str, client: Client) -> None:
    """Every address of the resolver, with every method, through the whole site: who may not is
    led to the login or refused."""
    client.raise_request_exception = False
    if role != "anonymous":
        user = account(role)
        User.objects.filter(pk=user.pk).update(is_staff=role in ("staff", "admin"))
        client.force_login(user)
    seen: Counter[str] = Counter()
    for namespace, name, address in all_addresses():
        for method in METHODS:
            if is_allowed(role, namespace, name, method):
                continue
            answer = client.generic(method, address)
            where = answer.headers.get("Location", "")
            refused = answer.status_code in (401, 403, 404, 405)
            to_login = answer.status_code in (301, 302) and where.startswith(_ELSEWHERE)
            assert refused or to_login, (method, address, answer.status_code, where)
            if namespace == "admin" and method == "GET" and name != "login":
                assert to_login or answer.status_code in (403, 404), (address, answer.status_code)
            seen[namespace] += 1
    assert seen[""] > 5 * len(TABLE), "most methods are no address's"
    assert role == "admin" or seen["admin"] > 100


class Endless(io.RawIOBase):
    """A body of 3 GiB that counts how much of it was read."""

    taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, part: Any) -> int:
        self.taken += len(part)
        return len(part)


@pytest.mark.parametrize("role", ["anonymous", "plain", RETUNE])
@pytest.mark.parametrize("address", ["/import", "/selections/import", "/retune", "/login/", "/"])
def test_nothing_of_a_large_body_is_read_from_who_may_not_send_it(
    address: str, role: str, client: Client
) -> None:
    if role != "anonymous":
        client.force_login(account(role))
    body = Endless()
    answer = client.generic(
        "POST",
        address,
        **{
            "wsgi.input": body,
            "CONTENT_LENGTH": str(3 << 30),
            "CONTENT_TYPE": "multipart/form-data; boundary=x",
        },
    )
    assert answer.status_code in (302, 403, 405, 413)
    assert body.taken == 0


def test_who_may_import_sends_as_much_as_a_file_may_have(client: Client) -> None:
    client.force_login(account(IMPORT))
    body = Endless()
    sent = {"wsgi.input": body, "CONTENT_TYPE": "multipart/form-data; boundary=x"}
    limit = bodies.upload_limits()["import"]
    answer = client.generic("POST", "/import", **sent, CONTENT_LENGTH=str(limit + 1))
    assert (answer.status_code, body.taken) == (413, 0)


def test_a_page_names_the_permission_that_its_reader_lacks(reader: Client, world: World) -> None:
    for name, permission in {
        "graph": RETUNE,
        "template_node": RETUNE,
        "tuning_run": RETUNE,
        "kernel": BUILD,
        "selections": SELECT,
        "graphs": IMPORT,
    }.items():
        query = {"tab": "builds"} if name == "kernel" else {}
        page = reader.get(addresses(world)[name], query).content.decode()
        assert permissions.TITLES[permission] in page, name


def test_groups_are_there_from_the_start() -> None:
    rights = {
        group.name: set(group.permissions.values_list("codename", flat=True))
        for group in Group.objects.all()
    }
    assert rights["Importers"] == {"import_graph"}
    assert rights["Builders"] == {"import_graph", "build"}
    assert rights["Tuners"] == {"import_graph", "build", "retune", "select", "schedule"}


def test_no_other_way_in() -> None:
    """Addresses beside ours are Django's: the admin, which asks for itself, and the login."""
    routes = {str(pattern.pattern) for pattern in get_resolver().url_patterns}
    assert routes == {
        *("admin/login/", "admin/password_change/", "admin/", "login/", "logout/", ""),
        *("login/oidc/", "login/oidc/back/"),  # 404 where there is no provider
    }
    assert GeneratedKernel.objects.count() == 0
