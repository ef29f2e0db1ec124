"""What is measured is compiled code, unless a benchmark says otherwise."""

import os

os.environ.setdefault("PARETOSCOUT_COMPILE", "first")
