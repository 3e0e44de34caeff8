"""What the detector of series reads (``reading``), finds (``replay``) and writes (``writing``)."""
