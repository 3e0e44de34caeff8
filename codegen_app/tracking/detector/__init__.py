"""The detector's input (``queries``), algorithm (``replay``) and output (``writer``)."""
