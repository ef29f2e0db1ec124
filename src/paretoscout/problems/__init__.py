"""Problems to solve: made from means, from a linear model or from a table of measurements, or built in.

>>> import paretoscout as ps
>>> ps.problems.gaussian([[1, 0], [0, 1], [0, 0]], sigma=0.5)
<Problem 'gaussian': 3 arms, 2 metrics>
"""

from .built_in import available, load
from .make import gaussian, linear, read_csv, table

__all__ = ["available", "gaussian", "linear", "load", "read_csv", "table"]
