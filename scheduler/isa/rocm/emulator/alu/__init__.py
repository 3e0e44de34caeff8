"""The vector unit's computations: one row per instruction, one file per family."""
