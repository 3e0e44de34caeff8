"""Reading by SQL: views with documented columns, and roles that can read nothing else."""
