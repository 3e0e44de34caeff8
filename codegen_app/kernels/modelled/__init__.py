"""The model's results for kernels, as pages show them: modelled, never measured."""
