"""For all tests: properties are not timed, because a busy machine is no failure."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
