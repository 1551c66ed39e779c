"""``python -m layoutopt``: the command line."""

import sys


def start() -> None:
    """Run the command line as a process, also if Ctrl-C comes while it is imported."""
    try:
        from layoutopt.cli import main

        main.start()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    start()
