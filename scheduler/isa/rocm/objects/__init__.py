"""Code objects of AMD's GPUs that came without a listing, as listings (ADR 0026)."""
