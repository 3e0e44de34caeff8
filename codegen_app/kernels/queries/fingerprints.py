"""A fingerprint of the rows that a page was made from, in one cheap query: while it is unchanged,
so is the page.

PostgreSQL writes a changed row to another location (``ctid``) under another transaction (``xmin``).
For jobs in progress the fingerprint uses the columns that change together with the page instead: a
worker that compiles or models a build updates its row every few seconds.
"""

from __future__ import annotations

from django.db import connection

_KERNEL = """
WITH kernel AS (SELECT id, ctid, xmin FROM codegen_app_generatedkernel WHERE name = %s),
problem AS (
    SELECT DISTINCT problem_id
    FROM codegen_app_benchmarkresult AS result JOIN kernel ON kernel.id = result.kernel_id
)
SELECT md5(string_agg(of || ' ' || at || ' ' || by, ',' ORDER BY of, at)) FROM (
    SELECT 'kernel' AS of, ctid::text AS at, xmin::text AS by FROM kernel
    UNION ALL
    SELECT 'build', build.id::text, concat_ws(' ', build.state, build.stage, build.reason,
        build.attempts, build.deaths, build.started_at, build.finished_at, build.code_digest,
        build.listing_id, build.code_object_id, build.library_id)
    FROM codegen_app_build AS build JOIN kernel ON kernel.id = build.kernel_id
    UNION ALL
    SELECT 'result', result.ctid::text, result.xmin::text
    FROM codegen_app_benchmarkresult AS result JOIN kernel ON kernel.id = result.kernel_id
    UNION ALL
    SELECT 'modelling', modelling.id::text, concat_ws(' ', modelling.state, modelling.reason,
        modelling.attempts, modelling.started_at, modelling.finished_at, modelling.report_id)
    FROM codegen_app_modelling AS modelling
    JOIN codegen_app_build AS build ON build.id = modelling.build_id
    JOIN kernel ON kernel.id = build.kernel_id
    UNION ALL
    SELECT 'others', count(*)::text, max(id)::text
    FROM codegen_app_benchmarkresult WHERE problem_id IN (SELECT problem_id FROM problem)
    UNION ALL
    SELECT 'selection', ctid::text, xmin::text
    FROM codegen_app_selection WHERE problem_id IN (SELECT problem_id FROM problem)
    UNION ALL
    SELECT DISTINCT 'graph', graph.ctid::text, graph.xmin::text
    FROM codegen_app_graph AS graph
    JOIN codegen_app_templatenode AS node ON node.graph_id = graph.id
    JOIN codegen_app_kerneluse AS use ON use.template_node_id = node.id
    JOIN kernel ON kernel.id = use.kernel_id
) AS rows
"""


def kernel_fingerprint(name: str) -> str:
    """Return a fingerprint of the rows that workers write and a kernel's page shows (1 query)."""
    with connection.cursor() as cursor:
        cursor.execute(_KERNEL, [name])
        return str(cursor.fetchone()[0])
