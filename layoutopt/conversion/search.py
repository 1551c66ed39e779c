"""The best choice of layouts, in the time that there is."""

from __future__ import annotations

import time
from functools import partial

from layoutopt.alarm import PATIENCE, bounded
from layoutopt.conversion.labelling import ConversionLabelling
from layoutopt.limits import Limits
from layoutopt.pbqp.problem import CostAnswer, cost
from layoutopt.pbqp.solve import solve_pbqp
from layoutopt.result import Stopped


def proved(stated: ConversionLabelling, limits: Limits) -> CostAnswer:
    """Choose the best in the time that the rest leaves; what is given, where that is too short.

    Writing a graph down takes about as long as stating it, and half of it again.
    """
    early = limits.saving(1.5 * (time.monotonic() - limits.started))
    work = partial(solve_pbqp, stated.problem, early, stated.start)
    try:
        return bounded(work, lambda: early.over, PATIENCE["solve"])
    except (TimeoutError, MemoryError) as error:
        if isinstance(error, MemoryError):
            early.exhausted()
        found = cost(stated.problem, stated.start)
        stopped = early.stopped or Stopped.TIME_LIMIT
        return CostAnswer(
            labelling=stated.start, objective=found, bound=-stated.constant, stopped=stopped
        )
