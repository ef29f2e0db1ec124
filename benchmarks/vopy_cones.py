"""What VOPy makes of options under two of its ordering cones, printed as JSON; see cones.py.

Runs in an environment of its own, since VOPy needs numpy 1 and torch; so nothing of paretoscout is used here.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
import vopy.datasets.dataset
from vopy.algorithms import PaVeBa
from vopy.order import ConeTheta2DOrder
from vopy.utils import set_seed

#: The angles of the cones, in degrees: one in which fewer options beat each other than without, one in which more do.
ANGLES = (60, 135)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("given", help="JSON: clouds of exact means, and means, sigma, eps and delta of a run")
    given = json.loads(Path(parser.parse_args().given).read_text(encoding="utf-8"))
    torch.set_num_threads(1)
    means = np.array(given["means"])

    class Arms:
        """What `PaVeBa` reads of a dataset."""

        _in_dim = in_dim = 1
        _out_dim = out_dim = means.shape[1]
        _cardinality = len(means)
        in_data = np.linspace(0.0, 1.0, len(means))[:, None]
        out_data = means

    vars(vopy.datasets.dataset)["Arms"] = Arms
    said = []
    for angle in ANGLES:
        order = ConeTheta2DOrder(angle)
        runs = []
        for seed in given["seeds"]:
            set_seed(seed)
            run = PaVeBa(given["eps"], given["delta"], "Arms", order, given["sigma"] ** 2, conf_contraction=1)
            while not run.run_one_step():
                pass
            runs.append({"returned": sorted(int(arm) for arm in run.P), "samples": int(run.sample_count)})
        sets = [sorted(order.get_pareto_set_naive(np.array(cloud)).tolist()) for cloud in given["clouds"]]
        cone = order.ordering_cone
        said.append(
            {"angle": angle, "W": cone.W.tolist(), "alpha": cone.alpha.ravel().tolist(), "sets": sets, "runs": runs}
        )
    print(json.dumps(said))


if __name__ == "__main__":
    main()
