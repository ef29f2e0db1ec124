"""Slow, obvious reference implementations ("twins") that the compiled code is checked against.

They are written from the papers alone and share nothing with the library: every round is kept in a list, and
every mean, Gram matrix and estimate is summed again from those rounds whenever it is needed. Arms are
0, ..., K-1; larger is better on each of the L metrics; ties go to the smallest index.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Event = tuple[int, str, int]
Basis = tuple[ArrayLike, ArrayLike, ArrayLike]


def per_metric(value: ArrayLike, L: int) -> Array:
    """A number, or one number for each metric, as an array of shape (L,)."""
    return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (L,)))


# The vector form of the published tests. With one eps and one sigma the entries of `slack` and of `width` are
# equal, and since a width is positive:  surpasses <=> m(i, j) > width,
# stands_out <=> M^slack(i, j) >= width,  stays_within <=> M^slack(i, j) <= width.


def surpasses(y_j: Array, y_i: Array, width: Array) -> bool:
    """Whether j is certified to be better than i: on all metrics by more than the width."""
    return all(y_j[m] - y_i[m] > width[m] for m in range(len(width)))


def stands_out(y_i: Array, y_j: Array, slack: Array, width: Array) -> bool:
    """Whether some metric certifies that j does not beat i by more than the slack."""
    return any(y_i[m] + slack[m] - y_j[m] >= width[m] for m in range(len(width)))


def stays_within(y_i: Array, y_j: Array, slack: Array, width: Array) -> bool:
    """Whether j may still turn out to beat i by the slack: no metric has i ahead by more than the width."""
    return all(y_i[m] + slack[m] - y_j[m] <= width[m] for m in range(len(width)))


def dominates(b: Array, a: Array) -> bool:
    """Whether b is at least as good as a on all metrics and better on one (`a` precedes `b` in the paper)."""
    return bool(np.all(a <= b) and np.any(a < b))


class NaiveMultiPFI:
    """MultiPFI (Auer et al. 2016, Algorithm 1); with `everyone`, all K arms are pulled in every round."""

    def __init__(self, K: int, L: int, eps: ArrayLike, delta: float, sigma: ArrayLike, everyone: bool = False) -> None:
        self.K, self.L, self.delta, self.everyone = K, L, float(delta), everyone
        self.eps, self.sigma = per_metric(eps, L), per_metric(sigma, L)
        self.outcomes: list[list[Array]] = [[] for _ in range(K)]
        self.active: set[int] = set(range(K))
        self.front: list[int] = []  # in order of acceptance
        self.dropped: dict[int, int] = {}  # arm -> the rival that is certified to be better
        self.events: list[Event] = []  # (round, "drop" | "P1" | "accept", arm), in this order within a round
        self.round = 1
        self.queue = list(range(K))  # the arms that this round has still to pull

    @property
    def done(self) -> bool:
        return not self.active

    @property
    def pulls(self) -> list[int]:
        return [len(rows) for rows in self.outcomes]

    @property
    def samples(self) -> int:
        return sum(self.pulls)

    def choose(self) -> int:
        if self.done:
            raise RuntimeError("the run is over")
        return self.queue[0]

    def update(self, arm: int, outcome: ArrayLike) -> None:
        """Keep the outcome; the round ends when all of its arms were seen. Extra outcomes count as well."""
        if self.done:
            raise RuntimeError("the run is over")
        self.outcomes[arm].append(np.array(outcome, dtype=np.float64).reshape(self.L))
        if arm in self.queue:
            self.queue.remove(arm)
        if not self.queue:
            self.end_round()

    def mean(self, arm: int) -> Array:
        total = np.zeros(self.L)
        for row in self.outcomes[arm]:
            total = total + row
        return total / len(self.outcomes[arm])

    def beta(self, arm: int) -> Array:
        n = len(self.outcomes[arm])
        log = math.log(4 * self.K * self.L * n**2 / self.delta)
        return np.array([sigma * math.sqrt(2 * log / n) for sigma in self.sigma])

    def end_round(self) -> None:
        A = sorted(self.active)
        y = {k: self.mean(k) for k in A}
        beta = {k: self.beta(k) for k in A}
        # Step 2: drop the arms that are certified to be dominated; the rivals are all of A.
        for i in A:
            rivals = [j for j in A if surpasses(y[j], y[i], beta[i] + beta[j])]
            if rivals:
                self.dropped[i] = rivals[0]
                self.events.append((self.round, "drop", i))
        A1 = [i for i in A if i not in self.dropped]
        # Step 3: certified to be eps-optimal.
        P1 = [i for i in A1 if all(stands_out(y[i], y[j], self.eps, beta[i] + beta[j]) for j in A1 if j != i)]
        for i in P1:
            if not any(kind == "P1" and arm == i for _, kind, arm in self.events):
                self.events.append((self.round, "P1", i))
        # Step 4: of these, the ones that no undecided arm has still to be compared with.
        undecided = [i for i in A1 if i not in P1]
        P2 = [j for j in P1 if not any(stays_within(y[i], y[j], self.eps, beta[i] + beta[j]) for i in undecided)]
        # Step 5.
        for j in P2:
            self.front.append(j)
            self.events.append((self.round, "accept", j))
        self.active = set(A1) - set(P2)
        self.round += 1
        self.queue = list(range(self.K)) if self.everyone else sorted(self.active)


def context_basis(contexts: Array) -> tuple[Array, Array, Array]:
    """s (d,), U (d, d) and V (K, d) with contexts.T = U diag(s) V.T; u_i and v_i are the columns."""
    d = contexts.shape[1]
    gram = contexts.T @ contexts
    diagonal = np.diag(gram)
    if np.linalg.matrix_rank(contexts) < d:
        raise ValueError("the contexts do not span the space")
    if np.array_equal(gram, np.diag(diagonal)):
        s = np.sqrt(diagonal)
        return s, np.eye(d), contexts / s
    U, s, Vt = np.linalg.svd(contexts.T, full_matrices=False)
    return s, U, Vt.T


@dataclass
class Round:
    """What was drawn in a round of PFIwR, and what came of it."""

    t: int
    i: int  # basis index i_t
    a_check: int
    explored: bool  # t in E_t
    arm: int  # a_t
    w: float  # the weights of mixing; 0 in an exploration round
    w_check: float
    matched: bool  # the event M_t
    outcome: Array
    n_check: int = 0  # the exploration round that is reused; 0 in an exploration round
    mixed_x: Array | None = None
    mixed_y: Array | None = None
    theta_check: Array | None = None  # the exploration-mixed estimate at the end of this round


class NaivePFIwR:
    """PFIwR as printed (Algorithm PFIwR). It carries no guarantee at practical values of C."""

    def __init__(
        self,
        contexts: ArrayLike,
        L: int,
        eps: ArrayLike,
        delta: float,
        sigma: ArrayLike,
        theta_max: float,
        C: float = 33750.0,
        width_scale: float = 1.0,
        imputation: Literal["latest", "frozen"] = "latest",
        check_every: int = 1,
        basis: Basis | None = None,
    ) -> None:
        self.x = np.array(contexts, dtype=np.float64)
        self.K, self.d = self.x.shape
        self.L, self.delta, self.theta_max, self.C = L, float(delta), float(theta_max), float(C)
        self.eps, self.sigma = per_metric(eps, L), per_metric(sigma, L)
        self.width_scale, self.imputation, self.check_every = float(width_scale), imputation, check_every
        if imputation not in ("latest", "frozen"):
            raise ValueError(f"no such imputation: {imputation}")
        s, U, V = context_basis(self.x) if basis is None else (np.array(part, dtype=float) for part in basis)
        if (s.shape, U.shape, V.shape) != ((self.d,), (self.d, self.d), (self.K, self.d)):
            raise ValueError("the basis has the wrong shape")
        if not np.allclose(U @ np.diag(s) @ V.T, self.x.T, rtol=0, atol=1e-9 * max(1.0, float(s.max()))):
            raise ValueError("the basis does not give the contexts")
        self.b = [s[i] * U[:, i] for i in range(self.d)]  # the context basis s_i u_i
        self.v = [V[:, i] for i in range(self.d)]
        self.rounds: list[Round] = []
        self.drawn: Round | None = None  # the round between choose and update
        self.active: list[int] = list(range(self.K))
        self.front: set[int] = set()
        self.dropped: set[int] = set()
        self.events: list[Event] = []  # (round, "drop" | "accept", arm)
        self.theta_check = np.zeros((self.d, L))
        self.theta_hat = np.zeros((self.d, L))
        self.widths = np.full((self.K, L), np.inf)  # at the last test
        self.last_test = 0

    @property
    def t(self) -> int:
        """The number of rounds so far."""
        return len(self.rounds)

    @property
    def done(self) -> bool:
        return not self.active

    @property
    def arms(self) -> list[int]:
        return [r.arm for r in self.rounds]

    @property
    def explored(self) -> list[bool]:
        return [r.explored for r in self.rounds]

    @property
    def matched(self) -> list[bool]:
        return [r.matched for r in self.rounds]

    # ------------------------------------------------------------------ a round, up to the pull

    def choose(self, rng: np.random.Generator) -> int:
        if self.done:
            raise RuntimeError("the run is over")
        if self.drawn is not None:
            raise RuntimeError("the outcome of the last choice is missing")
        t = self.t + 1
        i = min(int(rng.random() * self.d), self.d - 1)
        a_check = self.draw_from_basis(i, rng.random())
        explored = self.explores(t, a_check)
        w = w_check = 0.0
        if explored:
            arm = a_check
        else:
            F = self.estimated_front()
            arm = F[min(int(rng.random() * len(F)), len(F) - 1)]
            w = math.sqrt(3) * (2 * rng.random() - 1)
            w_check = math.sqrt(3) * (2 * rng.random() - 1)
        # The match fails with probability 2^-rho_t, rho_t = log((t+1)^2/delta)/log 2.
        matched = rng.random() >= self.delta / (t + 1) ** 2
        self.drawn = Round(t, i, a_check, explored, arm, w, w_check, matched, np.zeros(self.L))
        return arm

    def pi(self, i: int) -> Array:
        """|v_ik| / ||v_i||_1; by eq. (linear_basis) E[||v_i||_1 sign(v_ia) Y_a] = (s_i u_i)' theta."""
        v = np.abs(self.v[i])
        return np.asarray(v / v.sum())

    def draw_from_basis(self, i: int, u: float) -> int:
        pi = self.pi(i)
        cumulated = np.cumsum(pi)
        for k in range(self.K):
            if cumulated[k] > u:
                return k
        return max(k for k in range(self.K) if pi[k] > 0)

    def gamma(self, t: int) -> float:
        return float(self.C * self.d**3 * math.log(2 * self.d * t**2 / self.delta))

    def explores(self, t: int, a_check: int) -> bool:
        """Eq. (exploration_set), with E_{t-1} on the left; round t itself counts on the right."""
        explored = sum(1 for r in self.rounds if r.explored and r.arm == a_check)
        drawn = sum(1 for r in self.rounds if r.a_check == a_check) + 1
        return explored <= self.gamma(t) / t * drawn

    def estimates(self) -> list[Array]:
        """The estimated outcomes x_k' theta_hat of all arms."""
        return [self.x[k] @ self.theta_hat for k in range(self.K)]

    def estimated_front(self) -> list[int]:
        """The arms of A_{t-1} whose estimate no other arm of A_{t-1} dominates."""
        y = self.estimates()
        return [k for k in self.active if not any(dominates(y[other], y[k]) for other in self.active)]

    # ------------------------------------------------------------------ a round, after the pull

    def update(self, outcome: ArrayLike) -> None:
        if self.drawn is None:
            raise RuntimeError("no choice was made")
        now, self.drawn = self.drawn, None
        now.outcome = np.array(outcome, dtype=np.float64).reshape(self.L)
        if not now.explored:
            self.mix(now)
        self.rounds.append(now)
        self.theta_check = now.theta_check = self.exploration_mixed()
        if not now.matched:
            return
        self.theta_hat = self.dr_mix()
        if now.t - self.last_test >= self.check_every:
            self.last_test = now.t
            self.test(now.t)

    def reuses(self, n: int) -> int:
        """How often exploration round n was reused so far."""
        return sum(1 for r in self.rounds if not r.explored and r.n_check == n)

    def mix(self, now: Round) -> None:
        # Eq. (mix_number): the sample of a_check that was reused least, the earliest of these.
        pool = [r.t for r in self.rounds if r.explored and r.arm == now.a_check]
        now.n_check = min(pool, key=lambda n: (self.reuses(n), n))
        recycled = self.rounds[now.n_check - 1]
        # Eq. (mixup_data), with ||v_i||_1.
        v, b = self.v[now.i], self.b[now.i]
        scale = np.abs(v).sum() * np.sign(v[recycled.arm])
        now.mixed_x = now.w * self.x[now.arm] + now.w_check * b
        now.mixed_y = now.w * now.outcome + now.w_check * scale * recycled.outcome

    def exploration_mixed(self) -> Array:
        """Eq. (mixup): ridge with I/2 over all rounds, mixed ones in place of those of exploitation."""
        gram = 0.5 * np.eye(self.d)
        moment = np.zeros((self.d, self.L))
        for r in self.rounds:
            if r.explored:
                x, y = self.x[r.arm], r.outcome
            else:
                assert r.mixed_x is not None
                assert r.mixed_y is not None
                x, y = r.mixed_x, r.mixed_y
            gram += np.outer(x, x)
            moment += np.outer(x, y)
        return np.asarray(np.linalg.solve(gram, moment))

    def pi_tilde(self) -> list[float]:
        """Eq. (tilde_distribution)."""
        return [1 / (2 * self.d)] * self.d + [1 / 2]

    def tilde_x(self, r: Round) -> list[Array]:
        """The d + 1 contexts of a round: the context basis, then that of the arm pulled."""
        return [*self.b, self.x[r.arm]]

    def pseudo_rewards(self, r: Round) -> list[Array]:
        """Eq. (pseudoY) for a matched round: the pseudo-action is d + 1, the arm pulled."""
        theta = self.theta_check if self.imputation == "latest" else r.theta_check
        assert theta is not None
        pseudo_action = self.d  # d + 1, counting from 0
        pseudo = []
        for i, x in enumerate(self.tilde_x(r)):
            imputed = x @ theta
            if i == pseudo_action:
                pseudo.append(imputed + (r.outcome - imputed) / self.pi_tilde()[i])
            else:
                pseudo.append(imputed)
        return pseudo

    def dr_mix(self) -> Array:
        """Eq. (estimator): over the matched rounds and their d + 1 contexts."""
        gram = np.eye(self.d)
        moment = np.zeros((self.d, self.L))
        for r in self.rounds:
            if r.matched:
                xs, ys = np.array(self.tilde_x(r)), np.array(self.pseudo_rewards(r))
                gram += xs.T @ xs  # sum over i of x_i x_i'
                moment += xs.T @ ys  # sum over i of x_i y_i'
        return np.asarray(np.linalg.solve(gram, moment))

    def confidence(self, t: int) -> Array:
        """Eq. (confidence_bound): beta_k for each metric, with F_t = t sum_k x_k x_k' + I and |A_{t-1}|."""
        F = np.eye(self.d)
        for x in self.x:
            F += t * np.outer(x, x)
        beta = np.zeros((self.K, self.L))
        for k in range(self.K):
            norm = math.sqrt(self.x[k] @ np.linalg.solve(F, self.x[k]))
            for m in range(self.L):
                if len(self.active) > self.d:
                    noise = self.sigma[m] * math.sqrt(self.d * math.log(7 * self.L * t / self.delta))
                else:
                    noise = 3 * self.sigma[m] * math.sqrt(math.log(28 * self.L * self.d * t**2 / self.delta))
                beta[k, m] = self.width_scale * 3 * norm * (self.theta_max + noise)
        return beta

    def test(self, t: int) -> None:
        """Eq. (gap_estimate) against the widths, and the update of the sets."""
        beta = self.widths = self.confidence(t)
        y = self.estimates()
        A, P = self.active, sorted(self.front)
        C = [k for k in A if not any(surpasses(y[j], y[k], beta[k] + beta[j]) for j in A + P)]
        P1 = [k for k in C if all(stands_out(y[k], y[j], 2 * self.eps, beta[k] + beta[j]) for j in C + P if j != k)]
        self.events += [(t, "drop", k) for k in A if k not in C] + [(t, "accept", k) for k in P1]
        self.dropped |= set(A) - set(C)
        self.front |= set(P1)
        self.active = [k for k in C if k not in P1]
