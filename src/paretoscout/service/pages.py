"""Pages for people."""

from __future__ import annotations

from fastapi import FastAPI

from .service import Service


def add_pages(app: FastAPI, service: Service) -> None:
    """Add the pages."""
