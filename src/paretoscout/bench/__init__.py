"""`paretoscout bench`: proven fronts for real commands.

`options.py` what is compared, `metrics.py` what is measured, `run.py` one run, `campaign.py` the whole, over a study,
`report.py` what came out. The verdicts that people act on are in `practical.py`.
"""

from . import report
from .campaign import Campaign, Failed, Plan, Progress
from .metrics import Source, source_of
from .options import Option, options_of, variables_of

__all__ = [
    "Campaign",
    "Failed",
    "Option",
    "Plan",
    "Progress",
    "Source",
    "options_of",
    "report",
    "source_of",
    "variables_of",
]
