"""Samples per second of VOPy's MultiPFI (`vopy.algorithms.Auer`), printed as one line of JSON.

Runs in an environment of its own, since VOPy needs numpy 1 and torch; so nothing of paretoscout is used here.
"""

import argparse
import importlib.metadata
import json
from time import perf_counter
from typing import Any

import numpy as np
import torch
import vopy.datasets.dataset
from numpy.typing import NDArray
from vopy.algorithms import Auer
from vopy.utils import set_seed

#: The name under which VOPy finds the means that were registered last.
DATASET = "Arms"


def register(means: NDArray[np.float64]) -> None:
    """Let VOPy find these means as a dataset: its algorithms take the name of one only, and look it up in a module."""
    arms, metrics = means.shape

    class Arms:
        """What VOPy reads of a dataset. Not a `Dataset`: its constructor would standardise the means."""

        _in_dim = 1
        _out_dim = metrics
        _cardinality = arms
        in_dim = 1
        out_dim = metrics
        # VOPy finds an arm by the nearest input: spread them out over the unit interval that it assumes.
        in_data = np.linspace(0.0, 1.0, arms)[:, None]
        out_data = means

    vars(vopy.datasets.dataset)[DATASET] = Arms


def algorithm(means: NDArray[np.float64], noise_var: float, eps: float, delta: float, contraction: float = 1.0) -> Any:
    """VOPy's `Auer` on these means; its widths are for sigma 1, whatever `noise_var`, over `contraction`."""
    register(means)
    auer = Auer(eps, delta, DATASET, noise_var, conf_contraction=contraction)
    seen = auer.problem.evaluate(auer.design_space.points[:, :-1], noisy=False)
    if not np.array_equal(seen, means):
        raise RuntimeError("VOPy does not see the means it was given")
    return auer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="stop after this much wall time")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    set_seed(arguments.seed)
    means = np.random.default_rng(5).normal(size=(16, 2))
    auer = algorithm(means, noise_var=1.0, eps=0.3, delta=0.1)

    finished = False
    start = perf_counter()
    while (seconds := perf_counter() - start) < arguments.seconds and not finished:
        finished = auer.run_one_step()

    samples = sum(len(observed) for observed in auer.model.design_samples)
    report = {
        "samples": samples,
        "seconds": seconds,
        "samples_per_second": samples / seconds,
        "vopy": importlib.metadata.version("vopy"),
        "finished": finished,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
