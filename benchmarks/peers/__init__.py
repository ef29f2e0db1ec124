"""`make peers`: paretoscout beside the programs of others, each in an environment of its own; writes docs/peers.md.

| file | what it is |
|---|---|
| `__main__.py` | the command: which peers, environments, runs |
| `page.py` | which answers are right, and the page |
| `driver.py` | what all drivers share; a driver runs in the environment of its peer and imports numpy and that peer only |
| `ours.py` | drives paretoscout, by a sweep |
| the others | drive the peer of that name |
"""
