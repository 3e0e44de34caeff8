"""An interpreter of AMD's instructions: the waves of a kernel, as its code object has them."""
