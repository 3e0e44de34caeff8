"""Search strategies: which configuration to try next, from what was seen so far."""
