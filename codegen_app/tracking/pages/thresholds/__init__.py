"""The page of a series' thresholds and baselines."""
