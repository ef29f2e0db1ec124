"""The algorithms: one file each. `available()` lists them, settings classes configure them.

>>> import paretoscout as ps
>>> ps.algorithms.PFIwR(exploration=0.01).width_scale
1.0
"""

from .contract import Accepts, Algorithm, Kernels, Settings, Setup
from .epsilon_pal import EpsilonPAL
from .kernel_ucb import KernelUCB
from .moglb_ucb import MoglbUCB
from .multi_pfi import MultiPFI
from .pfiwr import PFIwR
from .registry import available, get, register, resolve
from .scout import Scout
from .uniform import Uniform

__all__ = [
    "Accepts",
    "Algorithm",
    "EpsilonPAL",
    "KernelUCB",
    "Kernels",
    "MoglbUCB",
    "MultiPFI",
    "PFIwR",
    "Scout",
    "Settings",
    "Setup",
    "Uniform",
    "available",
    "get",
    "register",
    "resolve",
]
