"""The algorithms: one file each. `available()` lists them, settings classes configure them.

>>> import paretoscout as ps
>>> ps.algorithms.PFIwR(exploration=0.01).width_scale
1.0
"""

from .contract import Accepts, Algorithm, Kernels, Settings, Setup
from .lingape import LinGapE
from .multi_pfi import MultiPFI
from .pfiwr import PFIwR
from .rage import RAGE
from .registry import available, get, register, resolve
from .scout import Scout
from .uniform import Uniform
from .xy_adaptive import XYAdaptive
from .xy_static import GAllocation, XYAllocation

__all__ = [
    "RAGE",
    "Accepts",
    "Algorithm",
    "GAllocation",
    "Kernels",
    "LinGapE",
    "MultiPFI",
    "PFIwR",
    "Scout",
    "Settings",
    "Setup",
    "Uniform",
    "XYAdaptive",
    "XYAllocation",
    "available",
    "get",
    "register",
    "resolve",
]
