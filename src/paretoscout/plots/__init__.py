"""Figures of verdicts and of simulations, and the numbers they show.

A drawing function returns a matplotlib figure, and saves it where `path` is given. It changes nothing outside that
figure: no backend, no pyplot, no global style. The `*_data` functions give the same content without matplotlib.

>>> import paretoscout as ps
>>> result = ps.simulate(ps.problems.load("four-arms"), "uniform", eps=0.2, replicates=5)
>>> ps.plots.box_data([result])[0].label
'uniform'
"""

from .data import box_data, front_data, regret_data
from .figures import compare, regret, regret_curves, samples
from .picture import front
from .plan import plan

__all__ = ["box_data", "compare", "front", "front_data", "plan", "regret", "regret_curves", "regret_data", "samples"]
