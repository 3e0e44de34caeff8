"""What the model says of kernels: asked for, made by a worker, kept."""
