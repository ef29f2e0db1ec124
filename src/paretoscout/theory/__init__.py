"""What theory says of an instance with known means.

`bounds.py` has the bounds on samples, regret and errors that a paper prints, `difficulty.py` the characteristic time,
which no algorithm beats.

>>> import paretoscout as ps
>>> round(ps.theory.characteristic_time([[1.0, 0.6], [0.6, 1.0], [0.3, 0.3]], sigma=1.0).lower_bound(delta=0.05), 1)
185.5
"""

from .bounds import (
    PRINTED_EXPLORATION,
    estimation_bound,
    regret_lower_bound,
    regret_upper_bound,
    sample_lower_bound,
    sample_upper_bound,
    t_gamma,
)
from .difficulty import CharacteristicTime, characteristic_time

__all__ = [
    "PRINTED_EXPLORATION",
    "CharacteristicTime",
    "characteristic_time",
    "estimation_bound",
    "regret_lower_bound",
    "regret_upper_bound",
    "sample_lower_bound",
    "sample_upper_bound",
    "t_gamma",
]
