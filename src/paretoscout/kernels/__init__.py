"""Compiled building blocks: numbers in, numbers out; no Python objects, no files, no names."""
