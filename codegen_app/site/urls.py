"""URLs of the pages; each page has a ``.json`` view."""

from __future__ import annotations

from django.urls import path

from codegen_app.accounts.pages.password.view import password
from codegen_app.accounts.pages.tokens.view import revoke_token, tokens
from codegen_app.graphs.pages.graph.view import graph
from codegen_app.graphs.pages.graphs.view import graphs
from codegen_app.graphs.pages.ops.view import ops
from codegen_app.kernels.pages.compare.view import compare
from codegen_app.kernels.pages.external_kernel.view import (
    cancel_external_kernel,
    external_kernel,
    external_kernel_list,
    external_listing,
    external_report,
)
from codegen_app.kernels.pages.header.view import header
from codegen_app.kernels.pages.instruction.view import instruction
from codegen_app.kernels.pages.kernel.actions import (
    build_kernel,
    cancel_modelling,
    model_kernel,
    modelled_report,
)
from codegen_app.kernels.pages.kernel.files import (
    build_file,
    kernel_source,
    listing_index,
    listing_lines,
)
from codegen_app.kernels.pages.kernel.view import kernel
from codegen_app.kernels.pages.kernels.view import kernels
from codegen_app.kernels.queries.fingerprints import kernel_fingerprint
from codegen_app.site.api.urls import urlpatterns as of_programs
from codegen_app.site.pages.api.view import api_client, api_docs, api_schema
from codegen_app.site.pages.figures.view import figures
from codegen_app.site.pages.imports.view import cancel_preparation, import_file, recognize_file
from codegen_app.site.pages.overview.view import overview
from codegen_app.site.pages.search.view import palette, search
from codegen_app.site.pages.tour.view import tour
from codegen_app.tracking.pages.alert.actions import (
    actions,
    bisect_alert,
    cancel_bisection,
    cancel_remeasurement,
    remeasure_alert,
    retune_alert,
    skip_revision,
    withdraw_requests,
)
from codegen_app.tracking.pages.alerts.feed import alerts_feed
from codegen_app.tracking.pages.alerts.view import alert, alerts, triage, undo_triage
from codegen_app.tracking.pages.change.view import change
from codegen_app.tracking.pages.channels.view import (
    channel,
    channels,
    renew_channel_key,
    send_again,
    switch_channel,
    test_channel,
)
from codegen_app.tracking.pages.compare_revisions.view import (
    compare_revisions,
    compare_revisions_markdown,
)
from codegen_app.tracking.pages.history.files import series_badge, series_csv, series_plot
from codegen_app.tracking.pages.history.view import (
    annotate_point,
    remove_annotation,
    restore_point,
    series,
    series_point,
    series_points,
    withdraw_point,
)
from codegen_app.tracking.pages.rules.view import (
    import_owners,
    move_rule,
    remove_rule,
    rule,
    rules,
    save_rule,
)
from codegen_app.tracking.pages.series.view import all_series
from codegen_app.tracking.pages.team.view import (
    add_budget,
    budget,
    remove_budget,
    save_budget,
    team,
)
from codegen_app.tracking.pages.thresholds.view import (
    add_baseline,
    remove_baseline,
    save_thresholds,
    thresholds,
)
from codegen_app.tuning.pages.bundles.view import graph_bundle, kernel_bundle, packed_bundle
from codegen_app.tuning.pages.node.view import template_node
from codegen_app.tuning.pages.packing.view import cancel_packing, pack, packing_state
from codegen_app.tuning.pages.retune.view import retune
from codegen_app.tuning.pages.run.files import run_ledger, run_log
from codegen_app.tuning.pages.run.view import cancel_run, put_back_run, tuning_run
from codegen_app.tuning.pages.runs.view import tuning_runs
from codegen_app.tuning.pages.selections.view import (
    export_selections,
    import_selections,
    restore_selection,
    selections,
)
from codegen_app.web.components import components
from codegen_app.web.csp_reports import csp_reports
from codegen_app.web.page import with_json_view
from codegen_app.web.pagecache.cache import CachePolicy, cached
from codegen_app.web.pages.glossary.view import glossary
from codegen_app.workers.pages.devices.control import control_worker
from codegen_app.workers.pages.devices.view import devices

# TIMED pages show live worker states and the elapsed time of runs.
TIMED, PLAIN, BY_KERNEL = (
    CachePolicy(is_timed=True),
    CachePolicy(),
    CachePolicy(trace=kernel_fingerprint),
)

urlpatterns = [
    *with_json_view("", overview, "overview", TIMED),
    *with_json_view("figures", figures, "figures", PLAIN),
    path("tour/<int:step>", tour, name="tour"),
    *with_json_view("graphs", graphs, "graphs", PLAIN),
    *with_json_view("graphs/<int:pk>", graph, "graph", PLAIN),
    *with_json_view("nodes/<int:pk>", template_node, "template_node", PLAIN),
    *with_json_view("kernels", kernels, "kernels", PLAIN),
    *with_json_view("kernels/<slug:name>", kernel, "kernel", BY_KERNEL),
    path("kernels/<slug:name>/bundle.zip", kernel_bundle, name="kernel_bundle"),
    path("graphs/<int:pk>/bundle.zip", graph_bundle, name="graph_bundle"),
    path("graphs/<int:pk>/pack", pack, name="pack"),
    *with_json_view("packings/<int:pk>", packing_state, "packing"),
    path("packings/<int:pk>/bundle.zip", packed_bundle, name="packed_bundle"),
    path("packings/<int:pk>/cancel", cancel_packing, name="cancel_packing"),
    path("kernels/<slug:name>/<int:build>/lines/<int:first>", listing_lines, name="kernel_lines"),
    path("kernels/<slug:name>/<int:build>/index.json", listing_index, name="kernel_index"),
    *with_json_view("kernels/<slug:name>/<int:build>/headers/<path:file>", header, "header", PLAIN),
    *with_json_view("instructions/<str:target>/<str:mnemonic>", instruction, "instruction"),
    path("kernels/<slug:name>/<int:build>/<str:file>", build_file, name="kernel_download"),
    *with_json_view("runs", tuning_runs, "tuning_runs", TIMED),
    *with_json_view("runs/<int:pk>", tuning_run, "tuning_run", TIMED),
    path("runs/<int:pk>/ledger.jsonl", run_ledger, name="run_ledger"),
    path("runs/<int:pk>/autotune.log", run_log, name="run_log"),
    *with_json_view("selections", selections, "selections", PLAIN),
    path("selections/export.json", export_selections, name="export_selections"),
    path("selections/import", import_selections, name="import_selections"),
    path("selections/<int:pk>/put-back", restore_selection, name="put_back"),
    *with_json_view("alerts", alerts, "alerts"),
    *with_json_view("alerts/<int:pk>", alert, "alert"),
    path("alerts/triage", triage, name="triage"),
    path("alerts/undo", undo_triage, name="undo_triage"),
    *with_json_view("series/<int:pk>/thresholds", thresholds, "thresholds"),
    path("series/<int:pk>/thresholds/save", save_thresholds, name="save_thresholds"),
    path("series/<int:pk>/baselines", add_baseline, name="add_baseline"),
    path("baselines/<int:pk>/remove", remove_baseline, name="remove_baseline"),
    *with_json_view("rules", rules, "rules"),
    *with_json_view("rules/<int:pk>", rule, "rule"),
    path("rules/save", save_rule, name="save_rule"),
    path("rules/<int:pk>/move", move_rule, name="move_rule"),
    path("rules/<int:pk>/remove", remove_rule, name="remove_rule"),
    path("rules/owners", import_owners, name="import_owners"),
    *with_json_view("team", team, "team"),
    path("budgets", add_budget, name="add_budget"),
    *with_json_view("budgets/<int:pk>", budget, "budget"),
    path("budgets/<int:pk>/save", save_budget, name="save_budget"),
    path("budgets/<int:pk>/remove", remove_budget, name="remove_budget"),
    *with_json_view("devices", devices, "devices", TIMED),
    path("workers/steer", control_worker, name="steer_worker"),
    path("compare/revisions.md", compare_revisions_markdown, name="compare_revisions_md"),
    *with_json_view("compare/revisions", compare_revisions, "compare_revisions", PLAIN),
    *with_json_view("series", all_series, "series_list", TIMED),
    path("series/<int:pk>.csv", series_csv, name="series_csv"),
    path("series/<int:pk>.svg", series_plot, name="series_plot"),
    path("series/<int:pk>/badge.svg", series_badge, name="series_badge"),
    path("series/<int:pk>/points.json", cached(series_points, PLAIN), name="series_points"),
    *with_json_view("series/<int:pk>/points/<int:datum>", series_point, "series_point"),
    path("series/<int:pk>/points/<int:datum>/withdraw", withdraw_point, name="withdraw_point"),
    path("series/<int:pk>/points/<int:datum>/restore", restore_point, name="restore_point"),
    path("series/<int:pk>/points/<int:datum>/annotate", annotate_point, name="annotate_point"),
    path("annotations/<int:pk>/remove", remove_annotation, name="remove_annotation"),
    *with_json_view("series/<int:pk>", series, "series", PLAIN),
    *with_json_view("changes/<int:pk>", change, "change", TIMED),
    *with_json_view("compare", compare, "compare", PLAIN),
    *with_json_view("search", search, "search", TIMED),
    path("palette.json", palette, name="palette"),
    *with_json_view("ops", ops, "ops", PLAIN),
    *with_json_view("glossary", glossary, "glossary", PLAIN),
    *with_json_view("import", import_file, "import"),
    path("import/recognize", recognize_file, name="recognize_file"),
    path("graphs/<int:pk>/cancel", cancel_preparation, name="cancel_preparation"),
    path("runs/<int:pk>/cancel", cancel_run, name="cancel_run"),
    path("runs/<int:pk>/put-back", put_back_run, name="put_back_run"),
    *with_json_view("retune", retune, "retune"),
    path("kernels/<slug:name>/build", build_kernel, name="build_kernel"),
    path("kernels/<slug:name>/model", model_kernel, name="model_kernel"),
    path("modelled/<int:pk>/report.json", modelled_report, name="modelled_report"),
    *with_json_view("look", external_kernel_list, "look"),
    *with_json_view("look/<int:pk>", external_kernel, "foreign_kernel"),
    path("look/<int:pk>/kernel.s", external_listing, name="foreign_listing"),
    path("look/<int:pk>/report.json", external_report, name="foreign_report"),
    path("look/<int:pk>/cancel", cancel_external_kernel, name="cancel_foreign_kernel"),
    path("modelled/<int:pk>/cancel", cancel_modelling, name="cancel_modelling"),
    *with_json_view("alerts/<int:pk>/actions", actions, "alert_actions"),
    path("alerts/<int:pk>/retune", retune_alert, name="retune_alert"),
    path("alerts/<int:pk>/remeasure", remeasure_alert, name="remeasure_alert"),
    path("alerts/<int:pk>/bisect", bisect_alert, name="bisect_alert"),
    path("bisections/<int:pk>/cancel", cancel_bisection, name="cancel_bisection"),
    path("requests/<int:pk>/skip", skip_revision, name="skip_revision"),
    path("alerts/<int:pk>/withdraw", withdraw_requests, name="withdraw_requests"),
    path("remeasurements/<int:pk>/cancel", cancel_remeasurement, name="cancel_remeasurement"),
    path("password", password, name="password"),
    *with_json_view("tokens", tokens, "tokens"),
    path("tokens/<int:pk>/revoke", revoke_token, name="revoke_token"),
    path("alerts.atom", alerts_feed, name="alerts_feed"),
    *with_json_view("channels", channels, "channels"),
    *with_json_view("channels/<int:pk>", channel, "channel"),
    path("channels/<int:pk>/switch", switch_channel, name="switch_channel"),
    path("channels/<int:pk>/test", test_channel, name="test_channel"),
    path("channels/<int:pk>/key", renew_channel_key, name="renew_channel_key"),
    path("deliveries/<int:pk>/again", send_again, name="send_again"),
    *of_programs,
    *with_json_view("api/v1/docs", api_docs, "api_docs", PLAIN),
    path("api/v1/openapi.json", api_schema, name="api_schema"),
    path("api/v1/client.py", api_client, name="api_client"),
    path("csp-reports", csp_reports, name="csp_reports"),
    path("components", components, name="components"),
    # Last: matches any name that none of the above does.
    path("kernels/<slug:name>/<str:file>", kernel_source, name="kernel_source"),
]
