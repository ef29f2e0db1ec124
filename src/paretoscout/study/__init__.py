"""Live studies, and tables that are finished.

`spec.py` is what a study is made of, `replica.py` its state as a function of its events, `study.py` asking and telling,
`outlook.py` what is still needed and why an arm has its verdict, `analysis.py` verdicts from a table.
"""

from .analysis import analyze
from .outlook import Explanation, Remaining
from .spec import Guard, StudySpec
from .study import Study, Trial

__all__ = ["Explanation", "Guard", "Remaining", "Study", "StudySpec", "Trial", "analyze"]
