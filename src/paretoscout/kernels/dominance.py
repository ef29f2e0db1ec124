"""Who dominates whom, and by how much: the undominated rows of a table, and the distances behind the gaps.

Larger is better in every column. Nothing here adds up columns to decide anything: a sum rounds, and a
dominated row may then look as good as its dominator. Comparisons are exact, so ties and copies are too.

No kernel calls itself: numba crashes when a recursive function comes out of the cache (numba #6061).
Recursion is written as a stack of ranges instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compile import allocating_kernel, kernel

# None of these changes a result, only the speed.
WINDOW = 128  # rows that `sift` may hold
RUN = 8  # rows sorted by insertion before merging starts
SAMPLE = 15  # values that a pivot is the median of
SMALL = 16  # rows compared with one another directly
PAIRS = 32_768  # pairs of rows compared directly
BLOCK = 64  # rows compared at once: long enough for the compiler to use vector instructions
BUCKET = 16  # rows in a leaf of a tree
FEW = 128  # searches that no tree is built for


# The undominated rows


@allocating_kernel
def undominated(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the mask of the rows of `values` (K, L) that no other row dominates; all copies are kept.

    One pass throws out most dominated rows. What it leaves takes O(K log K) steps for L <= 3, and
    O(K log^(L-2) K) by divide and conquer above (Kung, Luccio and Preparata, 1975).
    """
    alive = np.ones(values.shape[0], np.bool_)
    n_columns = values.shape[1]
    if n_columns == 1:
        keep_largest(values.ravel(), alive)
    elif n_columns <= 3:
        sweep(values, sift(values, alive), alive)
    else:
        divide(values, sift(values, alive), alive)
    return alive


@kernel
def keep_largest(column, alive):
    """One column: mark all but the largest."""
    largest = -np.inf
    for start in range(0, column.size, 4 * BLOCK):
        part = column[start : start + 4 * BLOCK]
        # Vector instructions can tell whether a part has a larger value, and few have, sorted or not.
        largest = max(largest, max(part[0], part[part.size - 1]))
        larger = np.int64(0)
        for k in range(part.size):
            larger |= np.int64(part[k] > largest)
        if larger:
            for k in range(part.size):
                largest = max(largest, part[k])
    for k in range(column.size):
        alive[k] = column[k] == largest


@allocating_kernel
def sift(values, alive):
    """Mark the rows that some strong row dominates; return the others, of which few are dominated.

    The strong rows stand in a window, those that hit most in front. The window grows while most rows are
    hit, and shrinks to one row while few are: where no row is dominated it would cost much for nothing.
    """
    n_rows, n_columns = values.shape
    window = np.empty((WINDOW, n_columns))
    strongest, largest_sum = 0, -np.inf
    for k in range(n_rows):
        total = 0.0
        for col in range(n_columns):
            total += values[k, col]
        if total > largest_sum:
            strongest, largest_sum = k, total
    copy_row(values, strongest, window, 0)
    size = 1
    rows = np.empty(n_rows, np.int64)
    n_left = 0
    for k in range(n_rows):
        hit = -1
        worthwhile = 8 * n_left < 7 * k + 64
        for w in range(size if worthwhile else 1):
            if dominates(window, w, values, k, 0):
                hit = w
                break
        if hit >= 0:
            alive[k] = False
            if hit > 0:
                for col in range(n_columns):
                    window[hit, col], window[hit // 2, col] = window[hit // 2, col], window[hit, col]
            continue
        rows[n_left] = k
        n_left += 1
        if worthwhile and (size < 8 or (size < WINDOW and 4 * n_left < k)):
            still = 0
            for w in range(size):
                if not covers(values, k, window, w):
                    copy_row(window, w, window, still)
                    still += 1
            copy_row(values, k, window, still)
            size = still + 1
    return rows[:n_left]


@kernel
def dominates(upper, a, lower, b, first):
    """Whether row `a` of `upper` dominates row `b` of `lower` in the columns from `first` on."""
    larger = False
    for col in range(first, upper.shape[1]):
        if upper[a, col] < lower[b, col]:
            return False
        larger |= upper[a, col] > lower[b, col]
    return larger


@kernel
def copy_row(source, a, target, b):
    """Write row `a` of `source` over row `b` of `target`. (A slice takes numba a second to compile.)"""
    for col in range(source.shape[1]):
        target[b, col] = source[a, col]


@kernel
def covers(upper, a, lower, b):
    """Whether row `a` of `upper` is at least as large as row `b` of `lower` everywhere."""
    for col in range(upper.shape[1]):  # noqa: SIM110 numba has no all()
        if upper[a, col] < lower[b, col]:
            return False
    return True


# Two or three columns: sort, then sweep


@allocating_kernel
def sweep(values, rows, alive):
    """Mark the dominated ones of `rows`, for two or three columns."""
    rows = sort_rows(values, rows, 0)
    firsts = np.empty_like(rows)
    n_firsts = 0
    for i in range(rows.size):
        if i == 0 or precedes(values, rows[i - 1], rows[i], 0):
            firsts[n_firsts] = rows[i]
            n_firsts += 1
    if values.shape[1] == 2:
        best = -np.inf
        for row in firsts[:n_firsts]:
            if values[row, 1] <= best:
                alive[row] = False
            best = max(best, values[row, 1])
    else:
        sweep_three(values, firsts[:n_firsts], alive)
    for i in range(1, rows.size):
        if not precedes(values, rows[i - 1], rows[i], 0):  # a copy
            alive[rows[i]] = alive[rows[i - 1]]


@allocating_kernel
def sweep_three(values, rows, alive):
    """Three columns, distinct sorted rows: merge sort on column 1, with column 2 watched while merging.

    In each merge the left half precedes the right one in column 0, so a right row is dominated just when
    some left row merged before it is as large in column 2.
    """
    source, target = rows, np.empty_like(rows)
    width = 1
    while width < rows.size:
        for start in range(0, rows.size, 2 * width):
            middle, stop = min(start + width, rows.size), min(start + 2 * width, rows.size)
            left, right, best = start, middle, -np.inf
            for k in range(start, stop):
                if right == stop or (left < middle and values[source[left], 1] >= values[source[right], 1]):
                    target[k] = source[left]
                    best = max(best, values[source[left], 2])
                    left += 1
                else:
                    target[k] = source[right]
                    if values[source[right], 2] <= best:
                        alive[source[right]] = False
                    right += 1
        source, target = target, source
        width *= 2


@allocating_kernel
def sort_rows(values, rows, first):
    """Return `rows` sorted by column `first`, ties by the next and so on, largest first. Changes `rows`."""
    for start in range(0, rows.size, RUN):
        for i in range(start + 1, min(start + RUN, rows.size)):
            row, k = rows[i], i
            while k > start and precedes(values, row, rows[k - 1], first):
                rows[k] = rows[k - 1]
                k -= 1
            rows[k] = row
    source, target = rows, np.empty_like(rows)
    width = RUN
    while width < rows.size:
        for start in range(0, rows.size, 2 * width):
            middle, stop = min(start + width, rows.size), min(start + 2 * width, rows.size)
            left, right = start, middle
            if right == stop or not precedes(values, source[right], source[right - 1], first):
                for k in range(start, stop):  # in order already
                    target[k] = source[k]
                continue
            for k in range(start, stop):
                if right == stop or (left < middle and not precedes(values, source[right], source[left], first)):
                    target[k] = source[left]
                    left += 1
                else:
                    target[k] = source[right]
                    right += 1
        source, target = target, source
        width *= 2
    return source


@kernel
def precedes(values, a, b, first):
    """Whether row `a` is larger than row `b` where they first differ, from column `first` on."""
    for col in range(first, values.shape[1]):
        if values[a, col] != values[b, col]:
            return values[a, col] > values[b, col]
    return False


# Four columns or more: divide and conquer


@allocating_kernel
def divide(values, rows, alive):
    """Mark the dominated ones of `rows`, for any number of columns. Reorders `rows`.

    A task (a, a_end, b, b_end, col) stands for: mark each of `rows[b:b_end]` that one of `rows[a:a_end]`
    dominates, where only the columns from `col` on are still in question. Either the two ranges are the
    same rows, equal in the columns before `col`; or each of the first is at least as large as each of
    the second there, and larger in one. Tasks only reorder rows inside their ranges, and a row already
    marked can be left out on either side: what dominates it dominates all that it dominates.
    """
    last = values.shape[1] - 1
    block = np.empty((values.shape[1], BLOCK))
    fits = np.empty(BLOCK, np.int64)
    tasks = np.empty((64, 5), np.int64)
    n_tasks = push(tasks, 0, 0, rows.size, 0, rows.size, 0)
    while n_tasks > 0:
        n_tasks -= 1
        a, a_end, b, b_end = tasks[n_tasks, 0], tasks[n_tasks, 1], tasks[n_tasks, 2], tasks[n_tasks, 3]
        col = tasks[n_tasks, 4]
        same = a == b
        b_end = move_marked_back(rows, b, b_end, alive)
        a_end = b_end if same else move_marked_back(rows, a, a_end, alive)
        if a == a_end or b == b_end or col > last:  # nothing to do, or only copies of one row
            continue
        if col == last:
            mark_last_column(values, rows, a, a_end, b, b_end, alive)
            continue
        if same and b_end - b <= SMALL:
            mark_small(values, rows, b, b_end, col, alive)
            continue
        n_pairs = (a_end - a) * (b_end - b)
        if not same and (n_pairs <= PAIRS or min(a_end - a, b_end - b) <= SAMPLE):
            mark_pairs(values, rows, a, a_end, b, b_end, col, block, fits, alive)
            continue
        if n_tasks + 5 > tasks.shape[0]:
            more = np.empty((2 * tasks.shape[0], 5), np.int64)
            for i in range(n_tasks):
                copy_row(tasks, i, more, i)
            tasks = more
        pivot = middle_value(values, rows, b, b_end, col)
        # Larger than the pivot, equal to it, smaller; the last task pushed is the next one done.
        b_equal, b_below = split(values, rows, b, b_end, col, pivot)
        if same:
            n_tasks = push(tasks, n_tasks, b_below, b_end, b_below, b_end, col)
            n_tasks = push(tasks, n_tasks, b, b_below, b_below, b_end, col + 1)
            n_tasks = push(tasks, n_tasks, b_equal, b_below, b_equal, b_below, col + 1)
            n_tasks = push(tasks, n_tasks, b, b_equal, b_equal, b_below, col + 1)
            n_tasks = push(tasks, n_tasks, b, b_equal, b, b_equal, col)
        else:
            _, a_below = split(values, rows, a, a_end, col, pivot)
            n_tasks = push(tasks, n_tasks, a, a_below, b_equal, b_end, col + 1)
            n_tasks = push(tasks, n_tasks, a, a_below, b, b_equal, col)
            n_tasks = push(tasks, n_tasks, a_below, a_end, b_below, b_end, col)


@kernel
def push(tasks, n_tasks, a, a_end, b, b_end, col):
    """Add a task unless a range is empty; return the number of tasks."""
    if a == a_end or b == b_end:
        return n_tasks
    tasks[n_tasks, 0], tasks[n_tasks, 1] = a, a_end
    tasks[n_tasks, 2], tasks[n_tasks, 3] = b, b_end
    tasks[n_tasks, 4] = col
    return n_tasks + 1


@kernel
def move_marked_back(rows, start, stop, alive):
    """Bring the living ones of `rows[start:stop]` to its front; return their end."""
    end = start
    for i in range(start, stop):
        row = rows[i]
        if alive[row]:
            rows[i] = rows[end]
            rows[end] = row
            end += 1
    return end


@allocating_kernel
def middle_value(values, rows, start, stop, col):
    """Return the median of a sample of column `col`: always the value of one of the rows."""
    sample = np.empty(SAMPLE)
    for i in range(SAMPLE):
        value, k = values[rows[start + i * (stop - start) // SAMPLE], col], i
        while k > 0 and sample[k - 1] > value:
            sample[k] = sample[k - 1]
            k -= 1
        sample[k] = value
    return sample[SAMPLE // 2]


@kernel
def split(values, rows, start, stop, col, pivot):
    """Reorder `rows[start:stop]`: larger than the pivot, equal, smaller; return where the last two begin."""
    equal, i, below = start, start, stop
    while i < below:
        row = rows[i]
        if values[row, col] > pivot:
            rows[i], rows[equal] = rows[equal], row
            equal += 1
            i += 1
        elif values[row, col] < pivot:
            below -= 1
            rows[i], rows[below] = rows[below], row
        else:
            i += 1
    return equal, below


@kernel
def mark_last_column(values, rows, a, a_end, b, b_end, alive):
    """Do a task that has one column left."""
    best = -np.inf
    for i in range(a, a_end):
        best = max(best, values[rows[i], -1])
    for i in range(b, b_end):
        value = values[rows[i], -1]
        if value < best or (value == best and a != b):
            alive[rows[i]] = False


@kernel
def mark_small(values, rows, start, stop, first, alive):
    """Do a task on few rows and themselves."""
    for i in range(start, stop):
        for k in range(start, stop):
            if alive[rows[k]] and dominates(values, rows[k], values, rows[i], first):
                alive[rows[i]] = False
                break


@kernel
def mark_pairs(values, rows, a, a_end, b, b_end, first, block, fits, alive):
    """Do a task on two ranges, a block of the first at a time and two columns at a time."""
    last = values.shape[1] - 1
    for start in range(a, a_end, BLOCK):
        for i in range(BLOCK):
            row = rows[min(start + i, a_end - 1)]
            for col in range(first, last + 1):
                block[col, i] = values[row, col]
        for k in range(b, b_end):
            if not alive[rows[k]]:
                continue
            fits[:] = 1
            for col in range(first, last + 1, 2):
                next_col = min(col + 1, last)
                value, next_value = values[rows[k], col], values[rows[k], next_col]
                some = np.int64(0)
                for i in range(BLOCK):
                    fits[i] &= np.int64((block[col, i] >= value) & (block[next_col, i] >= next_value))
                    some |= fits[i]
                if some == 0:
                    break
            if some != 0:
                alive[rows[k]] = False


# Distances: the one search that all gaps come from, and the rivals of undecided arms


@allocating_kernel
def nearest(
    values: NDArray[np.float64],
    queries: NDArray[np.int64],
    rows: NDArray[np.int64],
    shift: NDArray[np.float64],
    floor: float,
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each query k, return the least max(floor, max_l(y_j - y_k + shift)) + weights[j], j != k in `rows`, and j.

    The least of nothing is inf, and its row -1; of several rows it is the first in the table. With shift 0 and floor 0
    this is min_j M(j, k) + weights[j]. With -y for y and floor -inf it is min_j max_l(y_k - y_j + shift), which is
    -max_j m(k, j) before m is cut off at 0.

    A tree of boxes leaves out what cannot be nearest. Sums and differences round monotonically, so that
    the bound of a box holds for the rows in it to the last bit.
    """
    found, who = np.full(queries.size, np.inf), np.full(queries.size, -1)
    if queries.size <= FEW:  # a tree would take longer to build than to do without
        for i in range(queries.size):
            for j in rows:
                found[i], who[i] = nearer(values, queries[i], j, shift, floor, weights, found[i], who[i])
        return found, who
    order, ends, low, lightest, first = build_tree(values, rows, weights)
    n_nodes = ends.shape[0]
    stack, bounds = np.empty(n_nodes, np.int64), np.empty(n_nodes)
    for i in range(queries.size):
        k, best, its_row = queries[i], np.inf, np.int64(-1)
        stack[0], bounds[0], size = 0, -np.inf, 1
        while size > 0:
            size -= 1
            node = stack[size]
            if bounds[size] > best or (bounds[size] == best and first[node] >= its_row):
                continue
            if 2 * node + 1 >= n_nodes:
                for j in order[ends[node, 0] : ends[node, 1]]:
                    best, its_row = nearer(values, k, j, shift, floor, weights, best, its_row)
                continue
            near, far = 2 * node + 1, 2 * node + 2
            near_bound = excess(low, near, values, k, shift, floor) + lightest[near]
            far_bound = excess(low, far, values, k, shift, floor) + lightest[far]
            if near_bound > far_bound or (near_bound == far_bound and first[near] > first[far]):
                near, far, near_bound, far_bound = far, near, far_bound, near_bound
            stack[size], bounds[size] = far, far_bound
            stack[size + 1], bounds[size + 1] = near, near_bound
            size += 2
        found[i], who[i] = best, its_row
    return found, who


@kernel
def nearer(values, k, j, shift, floor, weights, best, its_row):
    """Return the least so far, and its row, once row j is looked at too."""
    if j == k:
        return best, its_row
    distance = excess(values, j, values, k, shift, floor) + weights[j]
    if distance < best or (distance == best and j < its_row):
        return distance, j
    return best, its_row


@kernel
def excess(upper, a, lower, b, shift, floor):
    """Return by how much row `a` of `upper`, shifted, exceeds row `b` of `lower` where it does most."""
    most = floor
    for col in range(upper.shape[1]):
        most = max(most, (upper[a, col] - lower[b, col]) + shift[col])
    return most


@allocating_kernel
def build_tree(values, rows, weights):
    """Return a balanced tree over `rows`: their order; each node's range, lower corner, least weight and first row.

    The children of node i are nodes 2 i + 1 and 2 i + 2. Each node is cut in half across its widest column.
    """
    n_columns = values.shape[1]
    n_nodes = 1
    while (n_nodes + 1) // 2 * BUCKET < rows.size:
        n_nodes = 2 * n_nodes + 1
    order = rows.copy()
    ends = np.zeros((n_nodes, 2), np.int64)
    ends[0, 1] = rows.size
    low, high = np.full((n_nodes, n_columns), np.inf), np.full(n_columns, -np.inf)
    lightest, first = np.full(n_nodes, np.inf), np.full(n_nodes, values.shape[0])
    for node in range(n_nodes):
        start, stop = ends[node, 0], ends[node, 1]
        high[:] = -np.inf
        for row in order[start:stop]:
            lightest[node] = min(lightest[node], weights[row])
            first[node] = min(first[node], row)
            for col in range(n_columns):
                low[node, col] = min(low[node, col], values[row, col])
                high[col] = max(high[col], values[row, col])
        if 2 * node + 1 < n_nodes:
            widest = 0
            for col in range(n_columns):
                if high[col] - low[node, col] > high[widest] - low[node, widest]:
                    widest = col
            middle = halve(values, order, start, stop, widest)
            ends[2 * node + 1, 0], ends[2 * node + 1, 1] = start, middle
            ends[2 * node + 2, 0], ends[2 * node + 2, 1] = middle, stop
    return order, ends, low, lightest, first


@allocating_kernel
def halve(values, rows, start, stop, col):
    """Reorder `rows[start:stop]` so that the first half is no smaller than the second in `col`; return its end."""
    middle = (start + stop) // 2
    while stop - start > 1:
        equal, below = split(values, rows, start, stop, col, middle_value(values, rows, start, stop, col))
        if middle < equal:
            stop = equal
        elif middle >= below:
            start = below
        else:
            break
    return middle
