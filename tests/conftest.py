"""Settings of all tests."""

from hypothesis import settings

# The same examples on every machine, however slow, and nothing left on disk.
settings.register_profile("tests", deadline=None, derandomize=True, database=None)
settings.load_profile("tests")
