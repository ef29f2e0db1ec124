"""The algorithms: one file each. `available()` lists them, settings classes configure them.

>>> import paretoscout as ps
>>> ps.algorithms.PFIwR(exploration=0.01).width_scale
1.0
"""

from .contract import Accepts, Algorithm, Kernels, Settings, Setup
from .gege import GEGE
from .gege_budget import GEGEBudget
from .multi_pfi import MultiPFI
from .pfiwr import PFIwR
from .psips import PSIPS
from .registry import available, get, register, resolve
from .scout import Scout
from .track_and_stop import TrackAndStop
from .uniform import Uniform

__all__ = [
    "GEGE",
    "PSIPS",
    "Accepts",
    "Algorithm",
    "GEGEBudget",
    "Kernels",
    "MultiPFI",
    "PFIwR",
    "Scout",
    "Settings",
    "Setup",
    "TrackAndStop",
    "Uniform",
    "available",
    "get",
    "register",
    "resolve",
]
