"""The algorithms: one file each. `available()` lists them, settings classes configure them.

>>> import paretoscout as ps
>>> ps.algorithms.PFIwR(exploration=0.01).width_scale
1.0
"""

from .contract import Accepts as Accepts
from .contract import Algorithm as Algorithm
from .contract import Kernels as Kernels
from .contract import Settings as Settings
from .contract import Setup as Setup
from .registry import available as available
from .registry import get as get
from .registry import register as register
from .registry import resolve as resolve

# A line for each file: it makes the settings public, and the file registers what is in it. In the order of listings.
# isort: off
from .scout import Scout as Scout
from .multi_pfi import MultiPFI as MultiPFI
from .uniform import Uniform as Uniform
from .pfiwr import PFIwR as PFIwR
from .ape import APE as APE
from .paveba import PaVeBa as PaVeBa
from .ege import EGESH as EGESH, EGESR as EGESR
from .pareto_ucb1 import ParetoUCB1 as ParetoUCB1
from .ucb_alpha import UCBAlpha as UCBAlpha
from .bobw_lilucb import BoBWLilUCB as BoBWLilUCB
from .best_arm.xy_static import GAllocation as GAllocation, XYAllocation as XYAllocation
from .best_arm.xy_adaptive import XYAdaptive as XYAdaptive
from .best_arm.rage import RAGE as RAGE
from .best_arm.lingape import LinGapE as LinGapE
from .gege import GEGE as GEGE
from .gege_budget import GEGEBudget as GEGEBudget
from .track_and_stop import TrackAndStop as TrackAndStop
from .psips import PSIPS as PSIPS
from .epsilon_pal import EpsilonPAL as EpsilonPAL
from .moglb_ucb import MoglbUCB as MoglbUCB
from .kernel_ucb import KernelUCB as KernelUCB
# isort: on
