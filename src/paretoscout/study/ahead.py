"""What asks go by: everything that was told, also outcomes that wait for a slow trial and are no evidence yet.

What is asked next may depend on all that is known, as the proofs allow; verdicts may not. So a study in which outcomes
wait has a second session, in which they count. It chooses what to measure. Once all is decided in it, more measurements
would be wasted: there is nothing to ask before the slow trial is told.

Outcomes of samples are added to such a session as they are told. In studies with blocks it is made again from what
counts by now and what waits, because there a pair is compared on the blocks of both, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..algorithms.scout.blocks import judge_again, note_values, settle_shares
from ..algorithms.states import copy_state
from ..kernels.arrays import BoolArray, FloatArray
from ..kernels.decisions import is_there
from ..laws import FEW_VALUES

if TYPE_CHECKING:
    from ..session import Session

#: A copy of a session takes as long as its arms: it is made when one outcome waits for each so many of them.
ARMS_PER_OUTCOME = 128


def with_cells(session: Session, cells: Mapping[tuple[int, int], FloatArray], n_blocks: int) -> None:
    """Let outcomes count in a session with blocks, wherever they are: by arm and place of the block, (L,) each.

    n_blocks: how many blocks there are with these. The next block of each arm stays what it was.
    """
    state, constants = copy_state(session.state), session.constants
    outcomes = state.outcomes
    if n_blocks > len(outcomes):
        room = np.full((n_blocks - len(outcomes), *outcomes.shape[1:]), np.nan)
        outcomes = np.concatenate([outcomes, room])
    known: BoolArray = ~np.isnan(outcomes).all(axis=2)
    for (arm, block), outcome in cells.items():
        if not known[block, arm]:
            outcomes[block, arm] = outcome
            known[block, arm] = True
    there = np.array([is_there(presence) for presence in state.presence])
    n_pilots = constants.n_pilots
    if not state.ready[0]:  # of blocks that are whole, the first ones are the pilots
        order = np.argsort(~known[:, there].all(axis=1), kind="stable")
        outcomes, known = np.ascontiguousarray(outcomes[order]), known[order]
        if not known[:n_pilots, there].all() or not known.any():
            return
    without = ~known[:n_pilots].all(axis=0)  # of an arm that came later the pilots may be missing
    outcomes[n_pilots:, without] = np.nan
    known[n_pilots:, without] = False
    if constants.passing:
        for metric in range(outcomes.shape[2]):
            for arm in range(outcomes.shape[1]):
                values = outcomes[:, arm, metric]
                values = np.unique(values[~np.isnan(values)])
                state.fixed[arm, metric] = values[0] if len(values) == 1 else np.inf if len(values) else np.nan
    for block, arm in np.argwhere(known & ((state.moved == 0).any(axis=1) | (state.n_seen <= FEW_VALUES).any())):
        note_values(state._replace(outcomes=outcomes), constants, int(arm), int(block))
    visited = state.visited.copy()
    blocks = np.arange(1, len(known) + 1)
    state.visited[:] = (known * blocks[:, None]).max(axis=0, initial=0)
    state.pulls[:] = known.sum(axis=0)
    state = state._replace(outcomes=outcomes)
    if not state.ready[0]:
        state.ready[0] = 1
        settle_shares(state, constants)
    judge_again(state, constants)
    state.visited[:] = visited
    session.state = state
