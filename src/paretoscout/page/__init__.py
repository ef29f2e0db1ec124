"""The page of a study, and the list of studies: what a `Standing` says, for people with a browser.

| file | what it is |
|---|---|
| `view.py` | `View`: all that a page shows, as a value, made of public calls of `Study` |
| `choice.py` | `Choice`: what somebody chose to see, from query parameters and back to links |
| `frame.py` | `Frame`: what the one who serves the page adds: links, downloads, the time |
| `render.py` | pages as text, from the templates |
| `sentences.py`, `words.py` | what the page says; numbers and units |
| `charts.py`, `progress.py`, `svg.py` | drawings |
| `evidence.py`, `table.py`, `listing.py` | why an option has its verdict; the options; the list of studies |

Nothing here is served: whoever has a study can write its page to a file, and a service can send it.
"""

from .choice import Choice
from .frame import Download, Frame
from .listing import Row, row_of, unreadable
from .render import list_page, message_page, sign_in_page, static, study_page
from .view import Column, Report, View, view_of

__all__ = [
    "Choice",
    "Column",
    "Download",
    "Frame",
    "Report",
    "Row",
    "View",
    "list_page",
    "message_page",
    "row_of",
    "sign_in_page",
    "static",
    "study_page",
    "unreadable",
    "view_of",
]
