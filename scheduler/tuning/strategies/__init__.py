"""Search strategies: choose the next configuration to try from the results so far."""
