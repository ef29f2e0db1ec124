"""The law of a column: what its outcomes may be taken for, by what was declared of them and by what was seen.

Evidence that assumes normal noise is wrong for a pass/fail test, for a score of few values, and for a number that has
not varied yet: 40 differences of 0 do not prove that two options are the same. So everything that judges asks here
first: rows, blocks, rounds, tables, guards, and each component of a sum of metrics. This file imports nothing, so that
compiled kernels can ask, too.
"""

from __future__ import annotations

#: The noise scale is known. / Normal, of unknown scale. / Anything within known bounds.
SIGMA, NORMAL, BOUNDS = 0, 1, 2
#: Outcomes are 0 or 1. / A number that never varies is certain. / Too few values for normal noise. / Only one value.
PASS_FAIL, EXACT, FEW_DIFFERENT, NEVER_VARIED = 3, 4, 5, 6
#: Laws that are no evidence, however many outcomes there are.
SILENT = (FEW_DIFFERENT, NEVER_VARIED)
#: What laws are called, for people to read.
NAMES = ("sigma known", "normal", "bounded", "pass/fail", "exact", "few values", "never varied")

#: So few different values do not look like normal noise.
FEW_VALUES = 5
#: So many outcomes, all 0 or 1, show that a column is pass/fail; both must be among them.
ENOUGH_OF_BOTH = 3


def law_of(declared: int, exact: bool, seen: float, different: int, of_both: bool, still: bool) -> int:
    """Return the law of a column.

    declared: SIGMA, BOUNDS or PASS_FAIL; NORMAL if nothing was declared of its noise. exact: True if a number that was
    the same in all measurements of an option is declared certain. seen: the number of outcomes seen, of all options.
    different: the number of different values among them; FEW_VALUES + 1 stands for all larger numbers. of_both: True if
    all outcomes are 0 or 1, and both were seen. still: True if what is asked about never varied: the outcomes of one
    option, or the differences between two.

    PASS_FAIL is evidence as BOUNDS of 0 and 1 are, and SILENT laws are none.

    >>> NAMES[law_of(NORMAL, False, seen=40, different=1, of_both=False, still=True)]
    'never varied'
    >>> NAMES[law_of(NORMAL, False, seen=40, different=2, of_both=True, still=True)]
    'pass/fail'
    """
    if exact and still:
        return EXACT
    if declared != NORMAL:
        return declared
    if of_both and seen >= ENOUGH_OF_BOTH:
        return PASS_FAIL
    if different <= 1:
        return NEVER_VARIED
    if different <= FEW_VALUES:
        return FEW_DIFFERENT
    return NEVER_VARIED if still else NORMAL
