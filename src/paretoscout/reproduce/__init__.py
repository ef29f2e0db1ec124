"""The paper's experiments, run again: figures, numbers, and a report that puts each claim beside what was measured.

W. Kim, G. Iyengar, A. Zeevi: Learning the Pareto front using bootstrapped observation samples. `paretoscout reproduce`
is the command for it.
"""

from .run import Outcome, reproduce
from .sizes import FIGURES, FULL, QUICK, Sizes

__all__ = ["FIGURES", "FULL", "QUICK", "Outcome", "Sizes", "reproduce"]
