"""VOPy's epsilon-PAL (`vopy.algorithms.EpsilonPAL`) on a linear problem: speed, and what it returns, as a line of JSON.

Runs in an environment of its own, since VOPy needs numpy 1 and torch; so nothing of paretoscout is used here. The
problem, contexts and means, comes in as JSON. VOPy fits the hyper-parameters of its kernel on the true means.
"""

import argparse
import importlib.metadata
import json
import sys
from time import perf_counter
from typing import Any

import numpy as np
import torch
import vopy.datasets.dataset
from numpy.typing import NDArray
from vopy.algorithms import EpsilonPAL
from vopy.utils import set_seed


def algorithm(
    contexts: NDArray[np.float64],
    means: NDArray[np.float64],
    noise_var: float,
    eps: float,
    delta: float,
    contraction: float,
) -> Any:
    """VOPy's `EpsilonPAL` on these arms; its beta is divided by `contraction`, 9 unless told otherwise."""

    class Arms:
        """What `EpsilonPAL` reads of a dataset. Not a `Dataset`: its constructor would standardise the means."""

        _in_dim = in_dim = contexts.shape[1]
        _out_dim = out_dim = means.shape[1]
        _cardinality = len(means)
        in_data = contexts
        out_data = means

    # `EpsilonPAL` takes the name of a dataset only, and looks it up among the globals of this module.
    vars(vopy.datasets.dataset)["Arms"] = Arms
    epal = EpsilonPAL(eps, delta, "Arms", noise_var, conf_contraction=contraction)
    seen = epal.problem.evaluate(epal.design_space.points, noisy=False)
    if not np.array_equal(seen, means):
        raise RuntimeError("VOPy does not see the means it was given")
    return epal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="stop after this much wall time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--contraction", type=float, default=1.0)
    parser.add_argument("--eps", type=float, default=0.3)
    arguments = parser.parse_args()
    problem = json.load(sys.stdin)

    torch.set_num_threads(1)
    set_seed(arguments.seed)
    contexts, means = np.array(problem["contexts"]), np.array(problem["means"])
    epal = algorithm(contexts, means, problem["sigma"] ** 2, arguments.eps, 0.1, arguments.contraction)
    kernel = epal.model.model.covar_module

    finished = False
    start = perf_counter()
    while (seconds := perf_counter() - start) < arguments.seconds and not finished:
        finished = epal.run_one_step()

    report = {
        "samples": epal.sample_count,
        "seconds": seconds,
        "samples_per_second": epal.sample_count / seconds,
        "vopy": importlib.metadata.version("vopy"),
        "finished": finished,
        "returned": sorted(epal.P),
        "length_scale": kernel.base_kernel.lengthscale.detach().numpy().reshape(means.shape[1], -1).tolist(),
        "prior_deviation": np.sqrt(kernel.outputscale.detach().numpy()).tolist(),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
