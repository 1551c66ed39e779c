"""``python -m layoutopt``: the command line."""

from layoutopt.cli.main import start

start()
