"""What the detector of series reads (``queries``), finds (``replay``) and writes (``writer``)."""
