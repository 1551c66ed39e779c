"""Writing certificates that :mod:`layoutopt.certificate` accepts."""
