"""An interpreter of AMD instructions: runs the waves of a kernel from its code object."""
