"""AMD's instructions: one table, for listings, the emulator and the cycle model."""
