"""Settings of series: their own, and those of rules by patterns."""
