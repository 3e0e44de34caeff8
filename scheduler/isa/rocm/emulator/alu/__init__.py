"""What the vector unit computes: one row an instruction, a file for each family."""
