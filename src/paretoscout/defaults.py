"""What holds where the caller says nothing. Importing it costs nothing, so that the command line can print it."""

from __future__ import annotations

#: The probability of error that is allowed, in everything that a user calls.
DELTA = 0.05
#: Where studies are kept.
STORAGE = "paretoscout.db"
