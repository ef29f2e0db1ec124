"""Who matters to an arm, among many: a search tree of the arms that stand.

Of each arm two rivals matter: who beats it most clearly, and whom it escapes least clearly. With up to SMALL arms all
are looked at. Of more there is a balanced binary tree, split by how well arms are known and by their means. Each node
has the best mean of its arms in each metric, and the ranges of their samples and variances: these bound what any of its
arms can show, so that most of the tree is never visited. Bounds stay right while samples come in; the tree is built
again now and then, so that they stay narrow.

Ranking goes by one term of the evidence (`largest_term`), and proves nothing. What a node proves is `surely_escaped`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...kernels.arrays import FloatArray, IntArray, SmallInts, arm_at
from ...kernels.compile import kernel, short_kernel
from ...kernels.decisions import DOMINATED, GONE, is_there
from ...kernels.noise import ROUNDING, NoiseModel, Samples, least_evidence, variance_of
from ...kernels.split import half_log_spread, least_excess, price_of, spread_of
from ...laws import NORMAL, SIGMA
from ..states import declare

#: The two verdicts on an arm: it escapes all others, or one beats it.
ESCAPES, BEATEN = 0, 1
#: Up to so many standing arms all are looked at.
SMALL = 40
#: So many arms are in a leaf, at most.
LEAF = 12
#: Arms known so much better than others, in one metric, are kept apart from them.
APART = 2.0


class Tree(NamedTuple):
    arms: SmallInts  # (K,) those that stood when it was built, leaf by leaf
    place: SmallInts  # (K,) where each is among them; -1: it is not
    size: IntArray  # (1,) how many they are
    precision: FloatArray  # (K,) how well each arm is known; scratch
    range: FloatArray  # (L,) of all means
    standing: SmallInts  # (N,) how many arms of each node stand
    tops: FloatArray  # (N, L) the largest mean
    fewest: FloatArray  # (N, L) samples
    most: FloatArray  # (N, L)
    quietest: FloatArray  # (N, L) variance of a sample
    noisiest: FloatArray  # (N, L)
    stack: SmallInts  # (64,) nodes to visit; scratch
    bounds: FloatArray  # (64,) what each of them promises; scratch
    own: FloatArray  # (L, R, 2) of the arm in question: log weight less price, and variance of its mean; scratch


declare(Samples, {"counts": "number"})
declare(Tree, {"arms": "place", "place": "arm", "size": "arms", "standing": "arms", "stack": "count"})


@kernel
def height_of(size: int) -> int:
    """How many times the arms are halved."""
    height = 0
    while (size >> height) > LEAF:
        height += 1
    return height


def empty_tree(K: int, L: int, R: int) -> Tree:
    """Return one for K arms, with none in it."""
    N = 2 << height_of(K) if K > SMALL else 0
    return Tree(
        arms=np.zeros(K, np.int32),
        place=np.full(K, -1, np.int32),
        size=np.zeros(1, np.int64),
        precision=np.zeros(K if N else 0),
        range=np.zeros(L),
        standing=np.zeros(N, np.int32),
        tops=np.zeros((N, L)),
        fewest=np.zeros((N, L)),
        most=np.zeros((N, L)),
        quietest=np.zeros((N, L)),
        noisiest=np.zeros((N, L)),
        stack=np.zeros(64, np.int32),
        bounds=np.zeros(64),
        own=np.zeros((L, R, 2)),
    )


# Building


@kernel
def build(tree: Tree, samples: Samples, model: NoiseModel, status: SmallInts, presence: SmallInts) -> None:
    """List the arms that stand, and build the tree where they are many."""
    K, n = samples.counts.shape[0], 0
    for k in range(K):
        tree.place[k] = -1
        if status[k] != DOMINATED and presence[k] != GONE:
            tree.arms[n] = k
            n += 1
    tree.size[0] = n
    if n > SMALL:
        for i in range(n):
            arm = arm_at(tree.arms, i)
            tree.precision[arm] = precision_of(samples, model, arm)
        for metric in range(samples.means.shape[1]):
            tree.range[metric] = range_of(tree, samples.means, metric, 0, n)
        height = height_of(n)
        for depth in range(height):
            for node in range(1 << depth):
                start, end = (node * n) >> depth, ((node + 1) * n) >> depth
                middle = ((2 * node + 1) * n) >> (depth + 1)
                split(
                    tree.arms,
                    start,
                    end,
                    middle,
                    widest(tree, samples.means, start, end),
                    samples.means,
                    tree.precision,
                )
        fill_nodes(tree, samples, model, height)
    for i in range(n):
        tree.place[tree.arms[i]] = i


@short_kernel
def precision_of(samples: Samples, model: NoiseModel, arm: int) -> float:
    """Samples over variance, multiplied over the metrics."""
    product = 1.0
    for metric in range(samples.means.shape[1]):
        n, variance = samples.counts[arm, metric], variance_of(samples, model, arm, metric)
        product *= min(1e30, n / variance) if variance > 0.0 else 1e30
    return product


@kernel
def widest(tree: Tree, means: FloatArray, start: int, end: int) -> int:
    """By which metric to split arms, or L: by how well they are known, if they differ much in that."""
    L = means.shape[1]
    low, high = np.inf, 0.0
    for i in range(start, end):
        precision = tree.precision[tree.arms[i]]
        low, high = min(low, precision), max(high, precision)
    if high > low * APART**L:
        return L
    found, most = 0, -1.0
    for metric in range(L):
        wide = range_of(tree, means, metric, start, end) / tree.range[metric] if tree.range[metric] > 0.0 else 0.0
        if wide > most:
            found, most = metric, wide
    return found


@kernel
def range_of(tree: Tree, means: FloatArray, metric: int, start: int, end: int) -> float:
    """How far the means of some arms lie apart."""
    low, high = np.inf, -np.inf
    for i in range(start, end):
        mean = means[tree.arms[i], metric]
        low, high = min(low, mean), max(high, mean)
    return high - low


@kernel
def split(
    arms: SmallInts, start: int, end: int, middle: int, metric: int, means: FloatArray, precision: FloatArray
) -> None:
    """Put arms in order so that none before the middle is above one behind it (quickselect)."""
    L = means.shape[1]
    low, high = start, end - 1
    while low < high:
        arm = arms[(low + high) >> 1]
        pivot = precision[arm] if metric == L else means[arm, metric]
        i, j = low, high
        while i <= j:
            while (precision[arms[i]] if metric == L else means[arms[i], metric]) < pivot:
                i += 1
            while (precision[arms[j]] if metric == L else means[arms[j], metric]) > pivot:
                j -= 1
            if i <= j:
                arms[i], arms[j] = arms[j], arms[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            break


@kernel
def fill_nodes(tree: Tree, samples: Samples, model: NoiseModel, height: int) -> None:
    """Work out the bounds of all nodes, from the leaves to the root (node 1)."""
    L = samples.means.shape[1]
    n, first = tree.size[0], 1 << height
    for leaf in range(first):
        node = first + leaf
        clear_node(tree, node)
        for i in range((leaf * n) >> height, ((leaf + 1) * n) >> height):
            tree.standing[node] += 1
            widen(tree, samples, model, node, arm_at(tree.arms, i))
    for node in range(first - 1, 0, -1):
        clear_node(tree, node)
        for child in range(2 * node, 2 * node + 2):
            tree.standing[node] += tree.standing[child]
            for metric in range(L):
                tree.tops[node, metric] = max(tree.tops[node, metric], tree.tops[child, metric])
                tree.fewest[node, metric] = min(tree.fewest[node, metric], tree.fewest[child, metric])
                tree.most[node, metric] = max(tree.most[node, metric], tree.most[child, metric])
                tree.quietest[node, metric] = min(tree.quietest[node, metric], tree.quietest[child, metric])
                tree.noisiest[node, metric] = max(tree.noisiest[node, metric], tree.noisiest[child, metric])


@kernel
def clear_node(tree: Tree, node: int) -> None:
    """Let a node have no arms."""
    tree.standing[node] = 0
    for metric in range(tree.tops.shape[1]):
        tree.tops[node, metric], tree.most[node, metric], tree.noisiest[node, metric] = -np.inf, 0.0, 0.0
        tree.fewest[node, metric], tree.quietest[node, metric] = np.inf, np.inf


@kernel
def widen(tree: Tree, samples: Samples, model: NoiseModel, node: int, arm: int) -> None:
    """Let the bounds of a node take in an arm as it is now."""
    for metric in range(samples.means.shape[1]):
        n, variance = samples.counts[arm, metric], variance_of(samples, model, arm, metric)
        top = samples.means[arm, metric] if n > 0.0 else np.inf
        tree.tops[node, metric] = max(tree.tops[node, metric], top)
        tree.fewest[node, metric] = min(tree.fewest[node, metric], n)
        tree.most[node, metric] = max(tree.most[node, metric], n)
        tree.quietest[node, metric] = min(tree.quietest[node, metric], variance)
        tree.noisiest[node, metric] = max(tree.noisiest[node, metric], variance)


@kernel
def leaf_of(tree: Tree, arm: int) -> int:
    """The leaf in which an arm is; 0: there is no tree, or it is not in it."""
    n = tree.size[0]
    if n <= SMALL or tree.place[arm] < 0:
        return 0
    leaves = 1 << height_of(n)
    return leaves + ((tree.place[arm] + 1) * leaves - 1) // n


@kernel
def note_change(tree: Tree, samples: Samples, model: NoiseModel, arm: int) -> None:
    """Keep the bounds right after an arm was measured."""
    node = leaf_of(tree, arm)
    while node > 0:
        widen(tree, samples, model, node, arm)
        node >>= 1


@kernel
def note_leaving(tree: Tree, arm: int) -> None:
    """Note that an arm stands no more."""
    node = leaf_of(tree, arm)
    while node > 0:
        tree.standing[node] -= 1
        node >>= 1


# Searching


@kernel
def prepare(tree: Tree, samples: Samples, model: NoiseModel, k: int) -> None:
    """Note what the evidence on pairs of k takes from k."""
    own, by_count, rhos = tree.own, model.by_count, model.rhos
    for metric in range(samples.means.shape[1]):
        n, variance = samples.counts[k, metric], variance_of(samples, model, k, metric)
        for r in range(rhos.shape[1]):
            own[metric, r, 0] = model.log_weights[r] - price_of(by_count, rhos, n, metric, r)
            own[metric, r, 1] = variance * spread_of(by_count, rhos, n, metric, r) if n > 0.0 else np.inf


@short_kernel
def largest_term(
    tree: Tree,
    samples: Samples,
    model: NoiseModel,
    k: int,
    metric: int,
    lead: float,
    n_paid: float,
    n_known: float,
    variance: float,
) -> float:
    """The largest term of the evidence of a lead between k and another arm, without its split; ranks, proves nothing.

    The other one pays for `n_paid` samples and is known by `n_known` of them: the same, or the ends of a node's range.
    """
    own, by_count, rhos = tree.own, model.by_count, model.rhos
    if n_known == 0.0:
        return -np.inf
    largest, half_square = -np.inf, 0.5 * max(0.0, lead) ** 2
    for r in range(rhos.shape[1]):
        spread = own[metric, r, 1] + variance * spread_of(by_count, rhos, n_known, metric, r)
        exponent = times(half_square, spread)
        if model.noise[metric] == NORMAL and 0.0 < exponent < np.inf:  # few samples do not tell the scale of the noise
            half_n = 0.5 * min(samples.counts[k, metric], n_known)
            exponent = half_n * math.log1p(exponent / half_n)
        largest = max(largest, own[metric, r, 0] - price_of(by_count, rhos, n_paid, metric, r) + exponent)
    if lead < 0.0:  # below what no lead says by as much as a lead is above it
        spread = own[metric, 0, 1] + variance * spread_of(by_count, rhos, n_known, metric, 0)
        largest -= times(0.5 * lead * lead, spread)
    return largest


@short_kernel
def times(square: float, spread: float) -> float:
    """How many times a spread goes into a square: not at all if nothing is known, any number of times if all is."""
    if square == 0.0 or spread == np.inf:
        return 0.0
    return square / spread if spread > 0.0 else np.inf


@short_kernel
def score(
    tree: Tree, samples: Samples, model: NoiseModel, eps: FloatArray, k: int, j: int, route: int, reached: float
) -> float:
    """How much j matters to k: how clearly it seems to beat k in every metric, or how little k seems to escape it.

    No more is worked out once it is no more than what was reached.
    """
    least = np.inf
    for metric in range(samples.means.shape[1]):
        lead = samples.means[j, metric] - samples.means[k, metric]
        if route == ESCAPES:
            lead = samples.means[k, metric] + eps[metric] - samples.means[j, metric]
        elif lead <= 0.0:
            return -np.inf
        n, variance = samples.counts[j, metric], variance_of(samples, model, j, metric)
        term = largest_term(tree, samples, model, k, metric, lead, n, n, variance)
        least = min(least, term if route == BEATEN else -term)
        if least <= reached:
            break
    return least


@short_kernel
def bound_of(tree: Tree, samples: Samples, model: NoiseModel, eps: FloatArray, k: int, node: int, route: int) -> float:
    """A bound from above on `score` of all arms of a node."""
    least = np.inf
    for metric in range(samples.means.shape[1]):
        lead = tree.tops[node, metric] - samples.means[k, metric]
        n_paid, n_known, variance = tree.fewest[node, metric], tree.most[node, metric], tree.quietest[node, metric]
        if route == ESCAPES:
            lead = samples.means[k, metric] + eps[metric] - tree.tops[node, metric]
            n_paid = tree.most[node, metric]
            if lead > 0.0:
                n_known, variance = tree.fewest[node, metric], tree.noisiest[node, metric]
        elif lead <= 0.0:
            return -np.inf
        term = largest_term(tree, samples, model, k, metric, lead, n_paid, n_known, variance)
        least = min(least, term if route == BEATEN else -term)
    return least


@short_kernel
def find_rival(
    tree: Tree,
    samples: Samples,
    model: NoiseModel,
    eps: FloatArray,
    status: SmallInts,
    presence: SmallInts,
    k: int,
    route: int,
    guess: int,
) -> int:
    """Who matters most to k: BEATEN, who seems to beat it most clearly; ESCAPES, whom it seems to escape least clearly.

    -1: nobody. `guess` is looked at first; `prepare` must have been called for k.
    """
    n, found, reached = tree.size[0], -1, -np.inf
    if guess >= 0 and matters(status, presence, k, guess, route):
        reached = score(tree, samples, model, eps, k, guess, route, -np.inf)
        found = guess if route == ESCAPES or reached > -np.inf else -1
    height = height_of(n) if n > SMALL else 0
    first, depth = 1 << height, 1
    tree.stack[0], tree.bounds[0] = 1, np.inf
    while depth > 0:
        depth -= 1
        node = arm_at(tree.stack, depth)
        if tree.bounds[depth] <= reached:
            continue
        if node < first:
            depth = push_children(tree, samples, model, eps, k, route, node, depth, reached)
            continue
        leaf = node - first
        for i in range((leaf * n) >> height, ((leaf + 1) * n) >> height):
            j = arm_at(tree.arms, i)
            if matters(status, presence, k, j, route):
                scored = score(tree, samples, model, eps, k, j, route, reached)
                if scored > reached or (found < 0 and route == ESCAPES):
                    found, reached = j, scored
    return found


@short_kernel
def push_children(
    tree: Tree,
    samples: Samples,
    model: NoiseModel,
    eps: FloatArray,
    k: int,
    route: int,
    node: int,
    depth: int,
    reached: float,
) -> int:
    """Put the children that may have more on the stack, the more promising one on top; return how many are on it."""
    stack, bounds, before = tree.stack, tree.bounds, depth
    for child in range(2 * node, 2 * node + 2):
        if tree.standing[child] > 0:
            bound = bound_of(tree, samples, model, eps, k, child, route)
            if bound > reached:
                stack[depth], bounds[depth] = child, bound
                depth += 1
    if depth == before + 2 and bounds[before] > bounds[before + 1]:
        stack[before], stack[before + 1] = stack[before + 1], stack[before]
        bounds[before], bounds[before + 1] = bounds[before + 1], bounds[before]
    return depth


@short_kernel
def matters(status: SmallInts, presence: SmallInts, k: int, j: int, route: int) -> bool:
    """Whether j may eliminate k, or has to be escaped."""
    return can_beat(status, presence, k, j) if route == BEATEN else must_be_escaped(status, presence, k, j)


@short_kernel
def can_beat(status: SmallInts, presence: SmallInts, k: int, j: int) -> bool:
    """Whether j may eliminate k."""
    return j != k and status[j] != DOMINATED and is_there(presence[j])


@short_kernel
def must_be_escaped(status: SmallInts, presence: SmallInts, k: int, j: int) -> bool:
    """Whether k has to escape j."""
    return j != k and status[j] != DOMINATED and presence[j] != GONE


@kernel
def surely_escaped(
    tree: Tree, samples: Samples, model: NoiseModel, eps: FloatArray, k: int, node: int, needed: float
) -> bool:
    """Whether the evidence that k escapes reaches what is needed for every arm of a node, in one metric alone.

    A term of the e-value falls with the price, with the variances and with x (how unequal the deviations are), and
    rises with z: each is taken at the worst end of its range. `prepare` must have been called for k.
    """
    by_count, rhos = model.by_count, model.rhos
    for metric in range(samples.means.shape[1]):
        top, mean = tree.tops[node, metric], samples.means[k, metric]
        lead = mean + eps[metric] - top
        fewest, most = tree.fewest[node, metric], tree.most[node, metric]
        quietest, noisiest = tree.quietest[node, metric], tree.noisiest[node, metric]
        certain = quietest == 0.0 or variance_of(samples, model, k, metric) == 0.0
        unknown = fewest == 0.0 or samples.counts[k, metric] == 0.0
        if certain or unknown or lead <= ROUNDING * (abs(mean) + abs(top)):
            continue
        if model.noise[metric] != SIGMA:
            if least_evidence(samples, model, k, metric, lead, fewest, most, noisiest, needed) >= needed:
                return True
            continue
        for r in range(rhos.shape[1]):
            spread = noisiest * spread_of(by_count, rhos, fewest, metric, r)
            z = lead / math.sqrt(tree.own[metric, r, 1] + spread)
            half_log = 0.5 * math.log(tree.own[metric, r, 1])
            one = half_log - 0.5 * math.log(quietest) - half_log_spread(by_count, rhos, most, metric, r)
            other = half_log - 0.5 * math.log(noisiest) - half_log_spread(by_count, rhos, fewest, metric, r)
            price = price_of(by_count, rhos, most, metric, r)
            x = max(abs(one), abs(other))
            term = tree.own[metric, r, 0] - price + 0.5 * z * z + least_excess(model.split_table, z, x)
            if term >= needed:
                return True
    return False
