"""The paper's experiments, run again: figures, numbers, and a report that puts each claim beside what was measured.

W. Kim, G. Iyengar, A. Zeevi: Learning the Pareto front using bootstrapped observation samples. `paretoscout reproduce`
is the command for it.
"""

from .plan import FIGURES, FULL, QUICK, Plan
from .run import Outcome, reproduce

__all__ = ["FIGURES", "FULL", "QUICK", "Outcome", "Plan", "reproduce"]
