"""Points of series: one figure each, whoever measured it, in our own JSON or another tool's."""
