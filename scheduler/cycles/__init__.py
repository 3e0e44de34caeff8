"""Where a kernel's cycles go on an AMD GPU: modelled from its instructions, never measured."""
