"""Live studies, and tables that are finished.

| file | what it is |
|---|---|
| `study.py` | `Study`: asking, telling, and what people may ask it |
| `spec.py` | the settings of a study, kept as text |
| `rows.py` | outcomes as they come in, checked |
| `log.py` | the log in its storage, and who may append to it |
| `replica.py` | the state of a study: a function of its settings and its log |
| `guards.py`, `tally.py` | limits that options must keep, and what was measured of each |
| `standing.py` | all that is known at one moment, as a value; its JSON is in `standing.schema.json` |
| `details.py`, `history.py` | what a page shows besides; how the study came to where it is |
| `loop.py` | measuring until all is decided |
| `workers.py` | which process asked for a trial, and whether it is alive |
| `forecast.py`, `explanation.py` | what is still needed, and why an option has its verdict |
| `heard.py` | asked against told, by option |
| `analysis.py`, `encoding.py` | verdicts from a finished table; columns as contexts |
"""

from .analysis import analyze, study_of_table
from .details import Details
from .explanation import Explanation
from .forecast import Remaining
from .heard import Heard
from .loop import find_front
from .rows import Below
from .spec import Guard, StudySpec
from .standing import Change, Pair, Standing, Trial, Voided, Waits, schema
from .study import Study

__all__ = [
    "Below",
    "Change",
    "Details",
    "Explanation",
    "Guard",
    "Heard",
    "Pair",
    "Remaining",
    "Standing",
    "Study",
    "StudySpec",
    "Trial",
    "Voided",
    "Waits",
    "analyze",
    "find_front",
    "schema",
    "study_of_table",
]
