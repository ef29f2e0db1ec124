"""The same experiment again and again, over a grid of settings, on one machine or many: one row for each replicate.

| file | what it is |
|---|---|
| `grid.py` | `sweep`: from problems, algorithms and a grid to rows in a folder, and what they say |
| `described.py` | a sweep in a YAML file |
| `cells.py` | `Cell`: what is played again and again; `Plan`: how often |
| `runs.py` | cells that run an algorithm on a problem |
| `schedule.py` | hands out chunks of replicates to an engine, and takes in rows |
| `store.py` | where rows are kept |
| `sources.py` | which code made them |
"""
