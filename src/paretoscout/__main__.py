"""`python -m paretoscout`."""

from .cli.main import main

main()
