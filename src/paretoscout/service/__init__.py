"""A server of studies for teams: `paretoscout serve`. docs/service.md is the guide.

| file | what it is |
|---|---|
| `settings.py` | what a server is told when it starts, and its limits |
| `app.py` | the application: its parts put together, from the first byte of a request to the last of the answer |
| `service.py` | what routes work with: storage, tokens, open studies and numbers of one process |
| `api.py` | `/v1`: each route is one method of a study |
| `bodies.py` | what comes in and goes out, as it stands in `/openapi.json` |
| `problems.py` | the one place where an error becomes an answer |
| `tokens.py` | tokens and workers, as they are kept |
| `access.py` | who calls, and what they may do |
| `studies.py` | open studies, within a memory limit, and keys of requests |
| `live.py` | events as they happen, and the history of them |
| `doors.py` | what every request goes through first: its size, its time, its number, its line in the log |
| `telemetry.py` | numbers for Prometheus, lines for the log |
| `pages.py` | pages for people |
| `start.py` | starting and ending it |
| `warm.py` | what is compiled before it says that it is ready |
| `demo.py` | example studies that move, for `paretoscout serve --demo` |
| `demo.py` | three example studies that move: `serve --demo` |
"""
