"""Property tests measure no time: the first call of a kernel may compile it."""

from hypothesis import settings

settings.register_profile("paretoscout", deadline=None)
settings.load_profile("paretoscout")
