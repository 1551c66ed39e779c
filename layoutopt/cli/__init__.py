"""The command line, the only room that prints."""

import time

LOADED = time.monotonic()
"""When Python began to load the command line; imports take a good part of a short command."""
