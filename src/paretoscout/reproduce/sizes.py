"""How much is run."""

from __future__ import annotations

from dataclasses import dataclass

FIGURES = ("fig1", "fig2", "fig3", "fig4")


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiments. The defaults are the paper's."""

    experiments: int = 1000  # of each estimator
    runs: int = 500  # of each algorithm at each eps
    eps: tuple[float, ...] = (0.06, 0.08, 0.10, 0.12, 0.14, 0.16, 0.18)
    seed: int = 0
    quick: bool = False

    @property
    def curve_eps(self) -> float:
        """The eps of which regret is shown round by round."""
        return self.eps[0]


FULL = Sizes()
QUICK = Sizes(experiments=100, runs=50, eps=(0.06, 0.12, 0.18), quick=True)
