"""The algorithms: one file each. `available()` lists them, settings classes configure them.

>>> import paretoscout as ps
>>> ps.algorithms.PFIwR(exploration=0.01).width_scale
1.0
"""

from .ape import APE
from .bobw_lilucb import BoBWLilUCB
from .contract import Accepts, Algorithm, Kernels, Settings, Setup
from .ege import EGESH, EGESR
from .epsilon_pal import EpsilonPAL
from .gege import GEGE
from .gege_budget import GEGEBudget
from .kernel_ucb import KernelUCB
from .lingape import LinGapE
from .moglb_ucb import MoglbUCB
from .multi_pfi import MultiPFI
from .pareto_ucb1 import ParetoUCB1
from .paveba import PaVeBa
from .pfiwr import PFIwR
from .psips import PSIPS
from .rage import RAGE
from .registry import available, get, register, resolve
from .scout import Scout
from .track_and_stop import TrackAndStop
from .ucb_alpha import UCBAlpha
from .uniform import Uniform
from .xy_adaptive import XYAdaptive
from .xy_static import GAllocation, XYAllocation

__all__ = [
    "APE",
    "EGESH",
    "EGESR",
    "GEGE",
    "PSIPS",
    "RAGE",
    "Accepts",
    "Algorithm",
    "BoBWLilUCB",
    "EpsilonPAL",
    "GAllocation",
    "GEGEBudget",
    "KernelUCB",
    "Kernels",
    "LinGapE",
    "MoglbUCB",
    "MultiPFI",
    "PFIwR",
    "PaVeBa",
    "ParetoUCB1",
    "Scout",
    "Settings",
    "Setup",
    "TrackAndStop",
    "UCBAlpha",
    "Uniform",
    "XYAdaptive",
    "XYAllocation",
    "available",
    "get",
    "register",
    "resolve",
]
