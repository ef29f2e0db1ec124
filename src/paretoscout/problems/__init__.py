"""Problems to solve: made from means, from a model, or from a table of measurements; built in; data sets.

>>> import paretoscout as ps
>>> ps.problems.gaussian([[1, 0], [0, 1], [0, 0]], sigma=0.5)
<Problem 'gaussian': 3 arms, 2 metrics>
"""

from ..frames import read_csv
from .built_in import available, card, fetch, load
from .catalogue import DATASETS
from .datasets import Dataset
from .make import gaussian, linear, logistic, table

__all__ = [
    "DATASETS",
    "Dataset",
    "available",
    "card",
    "fetch",
    "gaussian",
    "linear",
    "load",
    "logistic",
    "read_csv",
    "table",
]
