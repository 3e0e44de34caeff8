"""Points of series: one figure each, from any source, in Kiln's own JSON or another tool's."""
