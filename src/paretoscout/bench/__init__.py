"""`paretoscout bench`: proven fronts for real commands.

`options.py` what is compared, `metrics.py` what is measured, `run.py` one run, `campaign.py` the whole, over a study,
`columns.py` what can be shown beside the verdicts, `report.py` what came out, `page.py` the same as a page. The
verdicts that people act on are in `practical.py`.
"""

from . import page, report
from .campaign import Campaign, Failed, Plan, Progress
from .columns import Extra, columns_of
from .metrics import Source, source_of
from .options import Option, inputs_of, options_of, variables_of

__all__ = [
    "Campaign",
    "Extra",
    "Failed",
    "Option",
    "Plan",
    "Progress",
    "Source",
    "columns_of",
    "inputs_of",
    "options_of",
    "page",
    "report",
    "source_of",
    "variables_of",
]
