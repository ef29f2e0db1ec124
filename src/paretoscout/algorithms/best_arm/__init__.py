"""Algorithms that look for one best arm by linear contexts: a file each.

What they have in common: `linear_arms.py`, before they start; `judging.py`, at the end.
"""
