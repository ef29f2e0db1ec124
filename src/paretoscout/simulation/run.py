"""A run from any state: in compiled slices, and where the goal is "practical" with looks at the verdicts in between.

Replicates of a simulation are such runs, and so are the futures of a study.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..algorithms.contract import Kernels, Setup
from ..kernels.arrays import FloatArray, IntArray
from ..kernels.decisions import FRONT, UNDECIDED
from ..kernels.dispatch import Basis, Verdicts
from ..kernels.uncompiled import compiled
from ..practical import LOOK_AFTER, Judge, among
from .play import PLAYED, Log, measurer, player


class Run:
    """An algorithm in an environment, played as far as it is told to."""

    def __init__(
        self,
        kernels: Kernels,
        setup: Setup,
        state: Any,
        constants: Any,
        environment: Any,
        streams: tuple[np.random.Generator, np.random.Generator],
        *,
        log: Log | None = None,
        gaps: FloatArray | None = None,
        judge: Judge | None = None,
        there: Sequence[int] | IntArray | None = None,
    ) -> None:
        """log, gaps: where regret is kept, and by what. judge: of practical verdicts. there: who did not leave."""
        K, L = setup.n_arms, setup.n_metrics
        self.kernels, self.setup, self.environment = kernels, setup, environment
        self.state, self.constants = state, constants
        self.log = Log(np.zeros(0, np.int64), np.zeros(0), np.zeros(1), np.zeros(2, np.int64)) if log is None else log
        self.gaps = np.zeros(K) if gaps is None else gaps
        self.for_algorithm, self.for_environment = streams
        self.judge = judge
        self.there = np.arange(K) if there is None else np.asarray(there, np.int64)
        self.stopped = False  # every arm has its verdict
        self.stuck = False  # more samples are of no use
        self._pending, self._ticket = np.zeros(K, np.int64), np.zeros(kernels.ticket_size)
        self._observed, self._outcome = np.ones(L, np.bool_), np.empty(L)

    @property
    def samples(self) -> int:
        """Samples taken so far."""
        return int(self.log.counters[PLAYED])

    def compile(self) -> None:
        """Compile all there is."""
        with compiled():
            self._play(0)
            said = self.kernels.verdicts(self.state, self.constants)
            if self.judge is not None:
                of_pairs = self.kernels.apart
                apart = None if of_pairs is None else of_pairs(self.state, self.constants, self.setup.eps)
                self.judge.look(0, False, said, self.setup.eps, self.setup.certain, apart=apart)
                self._measure(self.there[:0])

    def advance(self, n_rounds: int) -> None:
        """Play up to `n_rounds` more rounds."""
        self.state = self.kernels.reserve(self.state, n_rounds)
        if self.judge is None:
            self.stopped = self._play(n_rounds)
            if self.stopped and self.kernels.blocks:  # or else there are no more blocks
                self.stuck = bool((self.kernels.verdicts(self.state, self.constants).status == UNDECIDED).any())
                self.stopped = not self.stuck
            return
        end, done = self.samples + n_rounds, self._done()
        while self.samples < end and not self.stopped and not self.stuck:
            step = max(1, min(end, self.judge.next_look) - self.samples)
            if done:  # the algorithm has its verdicts, and people want to know more
                counts = self.kernels.verdicts(self.state, self.constants).counts[self.there]
                turns = self.judge.turns(counts, step, self.setup.n_blocks or None)
                if not turns:  # by what was known at the last look
                    self._look(self.judge, done, at_once=True)
                    turns = self.judge.turns(counts, 1, self.setup.n_blocks or None)
                    self.stuck = not turns and not self.stopped
                self._measure(self.there[turns])
            else:
                done = self._play(step)
            self._look(self.judge, done)

    def advance_in_turn(self, n_rounds: int) -> None:
        """Play up to `n_rounds` more rounds, all arms in turn, whatever the algorithm would choose."""
        self.state = self.kernels.reserve(self.state, n_rounds)
        end = self.samples + n_rounds
        while self.samples < end and not self.stopped:
            until = min(end, int(LOOK_AFTER * self.samples) + 1)
            self._measure(self.there[np.arange(self.samples, until) % len(self.there)])
            self.stopped = self._done()
            if self.judge is not None:
                self._look(self.judge, self.stopped)

    def verdicts(self) -> Verdicts:
        """Return what is proven by now."""
        said = self.kernels.verdicts(self.state, self.constants)
        if self.judge is None:
            return said
        if self.judge.judgement is None:
            return said._replace(status=np.full_like(said.status, UNDECIDED))
        return said._replace(status=self.judge.judgement.status, rival=self.judge.judgement.rival)

    def returned(self, status: IntArray) -> Any:
        """(K,): the arms of the answer; before the end, all that are not ruled out."""
        return status == FRONT if self.stopped else (status == FRONT) | (status == UNDECIDED)

    def basis(self) -> Basis | None:
        """Return what each verdict rests on, where they differ in that."""
        return None if self.kernels.basis is None else self.kernels.basis(self.state)

    def _done(self) -> bool:
        return bool(self.kernels.done(self.state, self.constants))

    def _look(self, judge: Judge, done: bool, at_once: bool = False) -> None:
        if at_once or judge.due(self.samples, done):
            said = self.kernels.verdicts(self.state, self.constants)
            certain, apart = self.setup.certain[self.there], None
            if self.kernels.apart is not None:
                apart = self.kernels.apart(self.state, self.constants, self.setup.eps)[np.ix_(self.there, self.there)]
            basis, still = self.basis(), None
            if basis is not None and basis.held:  # intervals are yet to come
                still = np.zeros((len(self.there), self.setup.n_metrics), np.bool_)
            judge.look(self.samples, done, among(said, self.there), self.setup.eps, certain, apart=apart, still=still)
        self.stopped = judge.decided

    def _play(self, n_rounds: int) -> bool:
        done: bool = player(self.state)(
            self.state,
            self.constants,
            self.environment,
            self.gaps,
            self.log,
            self._pending,
            self._observed,
            self._outcome,
            self.for_algorithm,
            self.for_environment,
            n_rounds,
        )
        return done

    def _measure(self, arms: IntArray) -> None:
        """Measure arms that the algorithm did not ask for."""
        measurer(self.state)(
            self.state,
            self.constants,
            self.environment,
            self.gaps,
            self.log,
            arms,
            self._ticket,
            self._observed,
            self._outcome,
            self.for_environment,
        )
