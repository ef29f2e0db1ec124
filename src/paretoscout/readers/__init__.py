"""Result files of other tools: which tool is told by what is in them, and what was taken is said."""

from .reading import Measurements, Reading, find, numbers_beside, read, stated

__all__ = ["Measurements", "Reading", "find", "numbers_beside", "read", "stated"]
