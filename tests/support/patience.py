"""How long tests wait for what must come. Only what hangs takes so long, however busy the machine
is: none of them says anything of how long a thing takes."""

from __future__ import annotations

PATIENCE_S = 120.0
