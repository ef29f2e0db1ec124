"""The door for algorithms outside the package: all that the author of one needs, from one place.

`docs/algorithms.md` has a whole algorithm that is made of it. What is here keeps its name and meaning; other modules of
`algorithms` and `kernels` may change without notice.

>>> from paretoscout import extend
>>> extend.available()["uniform"]
'pull all arms in turn, stop by the tests of multi-pfi; the baseline'
"""

from .algorithms.contract import Accepts, Algorithm, Kernels, Settings, Setup
from .algorithms.ranges import setting
from .algorithms.registry import available, get, register
from .errors import InvalidInput, NotSupported
from .kernels.arrays import BoolArray, FloatArray, IntArray
from .kernels.compile import allocating_kernel, kernel
from .kernels.decisions import (
    DOMINATED,
    DOUBTFUL,
    FRONT,
    GONE,
    MISSED,
    PRESENT,
    UNDECIDED,
    dominator,
    is_there,
    margin,
    surely_covers,
    surely_dominates,
    surely_escapes,
    undominated_estimates,
    verdicts_by_estimates,
    verdicts_of_those_there,
    verdicts_with_rivals,
)
from .kernels.dispatch import NO_TICKET, Basis, Verdicts

__all__ = [
    "DOMINATED",
    "DOUBTFUL",
    "FRONT",
    "GONE",
    "MISSED",
    "NO_TICKET",
    "PRESENT",
    "UNDECIDED",
    "Accepts",
    "Algorithm",
    "Basis",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "InvalidInput",
    "Kernels",
    "NotSupported",
    "Settings",
    "Setup",
    "Verdicts",
    "allocating_kernel",
    "available",
    "dominator",
    "get",
    "is_there",
    "kernel",
    "margin",
    "register",
    "setting",
    "surely_covers",
    "surely_dominates",
    "surely_escapes",
    "undominated_estimates",
    "verdicts_by_estimates",
    "verdicts_of_those_there",
    "verdicts_with_rivals",
]
