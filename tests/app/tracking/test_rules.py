"""Rules by patterns: which series they apply to, what follows, and who owns what."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from codegen_app.accounts.models import AuditEntry
from codegen_app.tracking.alerting import missing_data, triage
from codegen_app.tracking.models import (
    Alert,
    AlertEvent,
    Change,
    EventKind,
    PatternRule,
    Series,
    SeriesRule,
    Source,
)
from codegen_app.tracking.rules import book, codeowners, matching, resolution, trial
from codegen_app.tracking.rules.book import RuleDraft
from codegen_app.tracking.rules.settings import RULES_OF_SERIES, SeriesSettings, series_settings
from codegen_app.tracking.services import alert_pipeline, detection, point_storage, thresholds
from codegen_app.tracking.services.withdrawals import withdraw
from scheduler.errors import UserError
from scheduler.results.points.model import Point, RevisionKey, SeriesKey
from scheduler.track import patterns
from scheduler.track.patterns import FACT_NAMES, SeriesFacts, SeriesPatterns, parse_patterns
from tests.support.alerts import START, alert, change, series
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db
STEP = [100.0] * 30 + [104.0] * 30


def person(name: str, **fields: Any) -> User:
    user = User.objects.create_user(name, **fields)
    user.user_permissions.add(Permission.objects.get(codename="triage"))
    return user


def history(values: list[float], path: str = "", repository: str = "kernels", **key: Any) -> Series:
    """A series with a point a day, measured from one file of a repository."""
    texts = {"problem": "gemm 4096", "target": "sm_90", "device": "NVIDIA H200"}
    of = SeriesKey(**(texts | {"sizes": {}, "toolchain": "", "metric": "time", "unit": "ns"} | key))
    points = [
        Point(
            of,
            value + 0.01 * (day % 3),
            START + timedelta(days=day),
            RevisionKey(f"r{day}", repository=repository),
            conditions={"path": path} if path else {},
        )
        for day, value in enumerate(values)
    ]
    point_storage.store(points, Source.API)
    return Series.objects.get(digest=of.digest)


def rule(by: User, position: int | None = None, **fields: Any) -> PatternRule:
    """A rule with patterns by fact, one text each."""
    patterns = parse_patterns({name: fields.pop(name, "") for name in FACT_NAMES})
    if "owner" in fields:
        fields["sets_owner"] = True
    else:
        fields.setdefault("sets_thresholds", True)
    return book.save(RuleDraft(patterns, position=position, **fields), "agreed by the team", by)


def settings(row: Series) -> SeriesSettings:
    return series_settings(Series.objects.select_related(*RULES_OF_SERIES).get(pk=row.pk))


def test_the_first_rule_that_matches_decides_and_the_series_own_thresholds_precede_it() -> None:
    ada = person("ada")
    row, other = history([100.0]), history([100.0], device="AMD MI300X")
    noisy = rule(ada, device="*H200*", least_effect=0.05)
    rule(ada, problem="gemm*", muted=True)
    alert_pipeline.process_pending()
    assert settings(row) == SeriesSettings(least_effect=0.05)
    assert settings(other) == SeriesSettings(muted=True)
    assert book.move(noisy, 2, ada)
    assert not book.move(noisy, 2, ada)
    alert_pipeline.process_pending()
    assert settings(row) == SeriesSettings(muted=True)
    SeriesRule.objects.create(series=row, stale_after=timedelta(days=2), reason="weekly")
    assert settings(row) == SeriesSettings(stale_after=timedelta(days=2))
    assert book.remove(PatternRule.objects.get(position=1), "quiet again", ada)
    alert_pipeline.process_pending()
    assert settings(other) == SeriesSettings()
    assert PatternRule.objects.count() == 1, "removed ones are gone once no series refers to them"
    actions = [one.action for one in AuditEntry.objects.order_by("pk") if "rule" in one.action]
    assert actions == ["add rule", "add rule", "move rule", "remove rule"]


def test_a_rule_without_thresholds_restores_the_defaults_for_its_series() -> None:
    ada, row, other = person("ada"), history([100.0], metric="compile time"), history([100.0])
    rule(ada, metric="compile time")
    rule(ada, muted=True)
    alert_pipeline.process_pending()
    assert (settings(row).muted, settings(other).muted) == (False, True)


def test_a_new_series_is_judged_by_its_rule_from_its_first_points_on() -> None:
    ada = person("ada")
    rule(ada, path="kernels/gemm/", least_effect=0.1)
    rule(ada, repository="fork*", muted=True)
    quiet = history(STEP, "kernels/gemm/a.py")
    loud = history(STEP, "kernels/conv/a.py", problem="conv")
    forked = history(STEP, problem="forked", repository="forks/kernels")
    alert_pipeline.process_pending()
    assert not Change.objects.filter(series=quiet).exists()
    assert Change.objects.get(series=loud).alert is not None
    assert Change.objects.get(series=forked).alert is None


def test_a_series_is_matched_again_when_its_latest_point_comes_from_another_file() -> None:
    row, ada = history([100.0], "old/a.py"), person("ada")
    rule(ada, path="new/", muted=True)
    alert_pipeline.process_pending()
    assert not settings(row).muted
    history([100.0, 100.0], "new/a.py")
    alert_pipeline.process_pending()
    assert settings(row).muted
    row.refresh_from_db()
    assert (row.repository, row.path, row.needs_rules) == ("kernels", "new/a.py", False)
    for datum in row.data.filter(conditions__facts__path="new/a.py"):
        withdraw(datum, "the wrong file", ada)
    alert_pipeline.process_pending()
    assert not settings(row).muted


def test_changed_rules_are_applied_in_steps_that_survive_a_killed_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [history([100.0], problem=f"gemm {number}") for number in range(3)]
    alert_pipeline.process_pending()
    rule(person("ada"), muted=True)
    monkeypatch.setattr(resolution, "MAX_SERIES", 2)
    assert resolution.apply_rules() == 2
    assert [settings(row).muted for row in rows] == [True, True, False]
    assert resolution.has_unapplied_rules() and alert_pipeline.has_pending()
    alert_pipeline.process_pending()
    assert all(settings(row).muted for row in rows)
    assert not alert_pipeline.has_pending()


def test_affected_series_are_checked_again_and_others_are_not() -> None:
    ada, row, other = person("ada"), history(STEP), history(STEP, problem="conv")
    alert_pipeline.process_pending()
    assert Change.objects.filter(withdrawn_at=None).count() == 2
    row_rule = rule(ada, problem="gemm*", least_effect=0.1)
    while resolution.apply_rules():
        pass
    row.refresh_from_db()
    other.refresh_from_db()
    assert (row.unchecked_from, other.unchecked_from) == (row.first_at, None)
    alert_pipeline.process_pending()
    [kept] = Change.objects.filter(withdrawn_at=None)
    assert kept.series == other
    book.remove(row_rule, "too blunt", ada)
    alert_pipeline.process_pending()
    assert Change.objects.filter(withdrawn_at=None).count() == 2


def test_an_edited_rule_keeps_its_place_and_unmuting_raises_the_change_of_the_current_level() -> (
    None
):
    ada, row = person("ada"), history(STEP)
    muting = rule(ada, problem="gemm*", muted=True)
    rule(ada, problem="*", least_effect=0.3)
    alert_pipeline.process_pending()
    assert not Alert.objects.exists()
    draft = RuleDraft(
        SeriesPatterns(problem=("gemm*",)), sets_thresholds=True, position=1, replaces=muting
    )
    book.save(draft, "looked into", ada)
    alert_pipeline.process_pending()
    assert Change.objects.get(series=row).alert is not None
    with pytest.raises(UserError, match="edited or removed meanwhile"):
        book.save(draft, "again", ada)
    with pytest.raises(UserError, match="edited or removed meanwhile"):
        book.move(muting, 2, ada)
    assert not book.remove(muting, "again", ada)


def test_the_time_after_which_data_are_missing_follows_the_rule() -> None:
    ada, row = person("ada"), history([100.0] * 3)
    alert_pipeline.process_pending()
    rule(ada, stale_after=timedelta(days=1))
    alert_pipeline.process_pending()
    row.refresh_from_db()
    assert row.stale_at == START + timedelta(days=3)
    rule(ada, owner=ada)
    alert_pipeline.process_pending()
    missing_data.update_alerts()
    silent = Alert.objects.get()
    assert silent.assignee == ada
    assert "configured time" in silent.events.get(kind=EventKind.RAISED).note


def test_a_raised_alert_is_assigned_to_the_owner_of_its_worst_series() -> None:
    ada, bob = person("ada"), person("bob")
    rule(ada, path="kernels/", owner=ada)
    rule(ada, owner=bob)
    history([100.0] * 30 + [120.0] * 30, "kernels/a.py", problem="worst")
    history([100.0] * 30 + [110.0] * 30, "other/a.py", problem="less")
    alert_pipeline.process_pending()
    raised = Alert.objects.get()
    assert raised.assignee == ada
    event = raised.events.get(kind=EventKind.ASSIGNEE)
    assert (event.by, event.note) == (None, "owner of the series by rule 1 (path kernels/)")
    # A person decides otherwise, and what happens to the alert later changes nothing.
    triage.assign([raised.pk], bob, ada)
    history([100.0] * 30 + [150.0] * 30, "kernels/b.py", problem="later")
    alert_pipeline.process_pending()
    raised.refresh_from_db()
    assert (raised.n_series, raised.assignee) == (3, bob)


def test_an_owner_who_may_not_triage_any_more_is_named_and_not_assigned() -> None:
    ada, bob = person("ada"), person("bob")
    rule(ada, owner=bob)
    bob.user_permissions.clear()
    history(STEP)
    alert_pipeline.process_pending()
    raised = Alert.objects.get()
    assert raised.assignee is None
    assert "not assigned to bob" in raised.events.get(kind=EventKind.NOTE).note


def test_a_rule_that_others_moved_meanwhile_has_a_place_of_its_own() -> None:
    ada = person("ada")
    first, second, third = (rule(ada, problem=name, muted=True) for name in ("a", "b", "c"))
    read_before = PatternRule.objects.get(pk=second.pk)
    book.move(first, 3, ada)
    assert book.move(read_before, 2, ada)
    places = [(row.pk, row.position) for row in resolution.standing_rules()]
    assert places == [(third.pk, 1), (second.pk, 2), (first.pk, 3)]


def test_what_is_no_rule_is_refused_in_a_line() -> None:
    ada, eve = person("ada"), User.objects.create_user("eve")
    for draft, reason, line in (
        (RuleDraft(), "why", "select what the rule decides"),
        (RuleDraft(sets_owner=True, owner=eve), "why", "owner: eve has no permission to triage"),
        (RuleDraft(sets_thresholds=True), " ", "enter a reason"),
    ):
        with pytest.raises(UserError, match=line):
            book.save(draft, reason, ada)
    assert not PatternRule.objects.exists()


def test_the_database_finds_the_series_that_patterns_match() -> None:
    keys = [
        history([100.0], path, problem=problem, device=device).pk
        for problem, device, path in (
            ("gemm_100%", "NVIDIA H200", "kernels/gemm/a.py"),
            ("gemmX100Y", "nvidia h100", "kernels/conv/a.py"),
            ("größe", "AMD MI300X", ""),
        )
    ]
    alert_pipeline.process_pending()
    for texts, expected in (
        ({}, keys),
        ({"problem": "GEMM_100%"}, keys[:1]),
        ({"problem": "gemm?100?"}, keys[:2]),
        ({"device": "*h?00", "path": "*.py"}, keys[:2]),
        ({"path": "kernels/*/a.py\nb"}, keys[:2]),
        ({"path": "/kernels/conv/"}, keys[1:2]),
        ({"problem": "größe"}, keys[2:]),
        ({"problem": "nothing"}, []),
        ({"repository": "kernels", "metric": "TIME"}, keys),
    ):
        assert matching.matching_series(parse_patterns(texts)) == expected, texts


def test_a_dry_run_says_what_a_rule_would_do_and_stores_nothing() -> None:
    ada, row = person("ada"), history(STEP)
    history(STEP, problem="gemm own")
    history(STEP, problem="conv")
    own = Series.objects.get(problem="gemm own")
    thresholds.save(own, thresholds.Proposal(least_effect=0.01), "its own", ada)
    first = rule(ada, problem="conv", muted=True, owner=ada, sets_thresholds=True)
    alert_pipeline.process_pending()
    draft = RuleDraft(
        parse_patterns({"problem": "gemm*\nconv"}),
        sets_thresholds=True,
        least_effect=0.1,
        sets_owner=True,
    )
    tried = trial.try_rule(draft)
    assert (tried.matching, tried.decided, tried.owned, tried.own) == (3, 1, 2, 1)
    assert (tried.affected, tried.gone, tried.new, tried.compared) == (1, 1, 0, None)
    assert [one.head.id for one in tried.tried] == [row.pk]
    assert tried.owners == ()
    # An edited rule: what it no longer matches is affected, too.
    edited = trial.try_rule(
        RuleDraft(parse_patterns({"problem": "gemm*"}), sets_owner=True, position=1, replaces=first)
    )
    assert (edited.matching, edited.affected, edited.unmuted) == (2, 1, 1)
    assert edited.owners == (("", 1),)
    assert PatternRule.objects.count() == 1
    with pytest.raises(UserError, match="select what the rule decides"):
        trial.try_rule(RuleDraft())


CODEOWNERS = """
# Owners
*            @ada            # everything else
/kernels/    @org/team @bob
docs/*       carol@example.org
/kernels/new/
!/kernels/x  @ada
/tools/      @nobody-here
"""


def test_a_codeowners_file_is_shown_by_line_and_imported_as_a_whole() -> None:
    ada, bob = person("ada"), person("Bob")
    person("carol", email="Carol@example.org")
    User.objects.create_user("eve", email="eve@example.org")
    file = codeowners.read_owners("kernels", ["kern*"], CODEOWNERS)
    assert [(line.number, line.owner, line.unknown) for line in file.lines] == [
        (3, "ada", ()),
        (4, "Bob", ("@org/team",)),
        (5, "carol", ()),
        (6, "", ()),
        (8, "", ("@nobody-here",)),
    ]
    assert [(line.number, line.reason) for line in file.ignored] == [
        (7, "exclusions (!) are not supported")
    ]
    assert (file.without_owner, file.replaced) == (1, 0)
    assert not PatternRule.objects.exists()
    first = rule(ada, position=1, muted=True, problem="x")
    last = rule(ada, muted=True, problem="y")
    assert codeowners.import_owners(file, "agreed", ada) == 5
    paths = [
        ("kernels/a.py", bob),
        ("kernels/new/a.py", None),
        ("tools/a.py", None),
        ("a.py", ada),
    ]
    for path, _ in paths:
        history([100.0], path, problem=path)
    alert_pipeline.process_pending()
    for path, owner in paths:
        row = Series.objects.select_related("owner_rule__owner").get(problem=path)
        assert row.owner_rule is not None
        assert row.owner_rule.owner == owner, path
    # Again: only this import's rules are replaced, at their place.
    book.move(last, 7, ada)
    again = codeowners.read_owners("kernels", [], "* @ada\n")
    assert again.replaced == 5
    codeowners.import_owners(again, "shorter", ada)
    standing = resolution.standing_rules()
    assert [row.import_name for row in standing] == ["", "kernels", ""]
    assert [row.pk for row in standing[::2]] == [first.pk, last.pk]
    assert [row.position for row in standing] == [1, 2, 3]


def test_an_owner_without_a_name_is_nobody() -> None:
    """Accounts without an e-mail address are not found by an empty one."""
    person("ada")
    file = codeowners.read_owners("kernels", [], "/kernels/ @ @ada\n/tools/ @\n")
    assert [(line.owner, line.unknown) for line in file.lines] == [("ada", ("@",)), ("", ("@",))]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        (" ", "* @ada", "name: enter one"),
        ("x", "# nothing\n\n", "no line with a pattern"),
        ("x", "a @b\n" * 501, "501 lines with a pattern, more than 500"),
    ],
)
def test_what_is_no_codeowners_file_is_refused_in_a_line(name: str, text: str, line: str) -> None:
    with pytest.raises(UserError, match=line):
        codeowners.read_owners(name, [], text)


def test_queries_of_rules_do_not_grow() -> None:
    ada = person("ada")
    counts = []
    for number in (1, 9):
        for each in range(number):
            history([100.0], problem=f"gemm {number} {each}")
            rule(ada, position=1, problem=f"gemm {number} {each}", owner=ada)
        counts.append(
            [
                queries_of(detection.detect_changes),
                queries_of(resolution.apply_rules),
                queries_of(matching.matching_series, SeriesPatterns()),
                queries_of(codeowners.read_owners, "x", [], "a @ada\n" * number),
                queries_of(trial.try_rule, RuleDraft(sets_owner=True)),
            ]
        )
    assert_steady(*counts, usual=[10, 7, 1, 3, 4])


def test_a_path_is_matched_once_for_all_series_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    ada = person("ada")
    asked: list[tuple[str, str]] = []

    def matches_path(pattern: str, path: str) -> bool:
        asked.append((pattern, path))
        return path.startswith(pattern)

    monkeypatch.setattr(patterns, "matches_path", matches_path)
    matcher = resolution.RuleMatcher(
        [rule(ada, path="src", problem="b", owner=ada), rule(ada, path="other", muted=True)]
    )
    matched = [
        matcher.match(SeriesFacts("kernels", problem, "H200", "time", "src/a.py"))
        for problem in ("a", "b", "c")
    ]
    assert [owner is not None for _, owner in matched] == [False, True, False]
    assert asked == [("src", "src/a.py"), ("other", "src/a.py")]


def test_a_link_or_a_change_without_a_rule_stays_as_it_was() -> None:
    """An alert of a series without owner has no assignee and no event of one."""
    change(alert(), series=series(), raised_at=None)
    alert_pipeline.process_pending()
    assert not AlertEvent.objects.filter(kind=EventKind.ASSIGNEE).exists()


def page_text(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return " ".join(unescape(answer.content.decode()).split())


NEW = {"problem": "gemm*", "decides": "both", "least_effect": "10", "stale_after": "2d"}


def test_a_rule_is_tried_saved_moved_edited_and_removed_on_its_pages(tuner: Client) -> None:
    person("ada")
    row = history(STEP)
    alert_pipeline.process_pending()
    text = page_text(tuner, "/rules")
    assert "No rules yet" in text
    text = page_text(tuner, f"/rules?{urlencode({**NEW, 'owner': 'ada', 'try': '1'})}")
    assert "matches 1 series; would decide the thresholds of 1 and the owner of 1" in text
    assert "1 gone, 0 new" in text
    assert not PatternRule.objects.exists()
    assert tuner.post("/rules/save", {**NEW, "owner": "ada", "why": ""}).status_code == 302
    assert not PatternRule.objects.exists(), "without a reason"
    tuner.post("/rules/save", {**NEW, "owner": "ada", "why": "known noise"})
    saved = PatternRule.objects.get()
    assert (saved.problem, saved.least_effect, saved.stale_after) == (
        ["gemm*"],
        0.1,
        timedelta(days=2),
    )
    assert "Workers are still applying" in page_text(tuner, "/rules")
    alert_pipeline.process_pending()
    text = page_text(tuner, "/rules")
    assert "minimum effect 10.0% missing after 2 days" in text
    for address in (row.get_absolute_url(), f"/series/{row.pk}/thresholds"):
        text = page_text(tuner, address)
        assert "rule 1 (problem gemm*)" in text and "known noise" in text, address
    [listed] = tuner.get("/rules.json").json()["rules"]
    assert (listed["n_thresholds"], listed["n_owned"], listed["owner"]) == (1, 1, "ada")
    # Edited: another row at the same place; the old address is gone.
    tuner.post(
        "/rules/save",
        {"problem": "conv*", "decides": "thresholds", "muted": "on"}
        | {"rule": saved.pk, "position": "1", "why": "narrower"},
    )
    alert_pipeline.process_pending()
    edited = PatternRule.objects.get()
    assert (edited.problem, edited.muted, edited.position) == (["conv*"], True, 1)
    assert tuner.get(saved.get_absolute_url()).status_code == 404
    assert "narrower" in page_text(tuner, edited.get_absolute_url())
    second = rule(person("bob"), metric="time", muted=True)
    tuner.post(f"/rules/{second.pk}/move", {"to": "1"})
    assert [one.pk for one in resolution.standing_rules()] == [second.pk, edited.pk]
    tuner.post(f"/rules/{second.pk}/remove", {"why": "not needed"})
    assert [one.pk for one in resolution.standing_rules()] == [edited.pk]


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"decides": "everything"}, "everything is not something that a rule decides"),
        ({"path": "!x"}, "exclusions (!) are not supported"),
        ({"owner": "eve"}, "eve has no account that may triage alerts"),
        ({"position": "0"}, "Enter a number from 1 on"),
        ({"least_effect": "200"}, "Must be at most 100%"),
        ({"stale_after": "soon"}, "soon is not a duration"),
    ],
)
def test_each_field_of_a_rule_says_what_is_wrong(
    tuner: Client, fields: dict[str, str], line: str
) -> None:
    User.objects.create_user("eve")
    for answer in (
        tuner.get("/rules", {**NEW, "try": "1", **fields}),
        tuner.post("/rules/save", {**NEW, "why": "x", **fields}),
    ):
        assert line in unescape(answer.content.decode())
    assert not PatternRule.objects.exists()


def test_owners_are_imported_on_the_page_after_their_lines_were_shown(tuner: Client) -> None:
    person("ada")
    sent = {"name": "kernels", "repository": "kern*\nother", "text": CODEOWNERS}
    answer = tuner.post("/rules/owners", sent)
    text = " ".join(unescape(answer.content.decode()).split())
    assert "@nobody-here" in text and "exclusions (!) are not supported" in text
    assert 'value="kern* other"' in text, "the repositories go on to the confirmation"
    assert not PatternRule.objects.exists()
    tuner.post("/rules/owners", {**sent, "confirm": "1", "why": "agreed"})
    assert PatternRule.objects.count() == 5
    assert PatternRule.objects.all()[0].repository == ["kern*", "other"]
    upload = SimpleUploadedFile("CODEOWNERS", b"\xef\xbb\xbf/src/ @ada\n")  # a byte order mark
    answer = tuner.post("/rules/owners", {"name": "kernels", "file": upload})
    [line] = answer.context["page"].file.lines
    assert (line.pattern, line.owner) == ("/src/", "ada")
    assert "1 rule; in place of 5 of the earlier import; nothing is saved yet" in " ".join(
        answer.content.decode().split()
    )
    for wrong, line in (
        ({"name": "kernels"}, "Paste the content of the file"),
        ({"name": "", "text": "* @ada"}, "Enter a name"),
        ({"name": "x", "file": SimpleUploadedFile("x", b"\xff\xfe")}, "not UTF-8"),
        ({"name": "x", "file": SimpleUploadedFile("x", b"a @b\0")}, "null characters"),
        ({"name": "x", "text": "# no lines"}, "no line with a pattern"),
    ):
        answer = tuner.post("/rules/owners", wrong)
        assert (answer.status_code, line in unescape(answer.content.decode())) == (422, True), line


def test_the_form_of_a_series_thresholds_begins_with_those_of_the_rule(tuner: Client) -> None:
    row = history(STEP)
    rule(person("ada"), least_effect=0.03, stale_after=timedelta(days=2))
    alert_pipeline.process_pending()
    text = page_text(tuner, f"/series/{row.pk}/thresholds")
    assert 'value="3.0"' in text and 'value="2d"' in text
    assert "Thresholds that you save here precede the rule." in text


def test_names_and_patterns_of_others_are_escaped(tuner: Client) -> None:
    evil = "<script>alert(1)</script>"
    rule(person("ada"), problem=evil, muted=True)
    tuner.post("/rules/owners", {"name": evil, "text": f"{evil} @ada", "confirm": "1", "why": evil})
    for address in ("/rules", PatternRule.objects.all()[0].get_absolute_url()):
        assert evil not in tuner.get(address).content.decode()


def test_readers_see_rules_and_change_none(reader: Client) -> None:
    row = rule(person("ada"), muted=True)
    text = page_text(reader, "/rules?try=1&decides=thresholds&muted=on")
    assert "Saving requires the permission" in text and "Save rule" not in text
    for address in ("/rules/save", f"/rules/{row.pk}/move", "/rules/owners"):
        assert reader.post(address, {"why": "x", "decides": "owner"}).status_code == 403
