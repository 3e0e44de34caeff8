"""What the model says of kernels, as pages show it: modelled, never measured."""
