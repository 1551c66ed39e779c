"""What an executor on a cluster makes of how jobs end there."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from layoutopt.bench.executors import _OnCluster


class Given:
    """A job that a made-up cluster has been given."""

    def __init__(self, answer: Any, status: str) -> None:
        self.answer, self.status = answer, status
        self.done: Callable[[Given], None] | None = None

    def add_done_callback(self, done: Callable[[Given], None]) -> None:
        """Note whom to tell."""
        self.done = done

    def result(self) -> Any:
        """Return the answer, or raise it."""
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def end(self) -> None:
        """Tell that it is over."""
        assert self.done is not None
        self.done(self)


class Client:
    """A made-up cluster: a job is its own answer."""

    def __init__(self, status: str) -> None:
        self.status = status
        self.jobs: list[Given] = []
        self.cancelled: list[Given] = []

    def submit(self, fn: Callable[..., Any], job: Any, pure: bool) -> Given:
        """Take a job."""
        assert not pure  # else equal jobs would be carried out once
        self.jobs.append(Given(fn(job), self.status))
        return self.jobs[-1]

    def cancel(self, jobs: list[Given]) -> None:
        """Note what is cancelled."""
        self.cancelled += jobs


def carried(answer: Any, status: str = "finished") -> Future[Any]:
    """Return what comes of a job with such an answer, whatever its status is by then."""
    client = Client(status)
    future = _OnCluster(client).submit(lambda job: job, answer)
    assert not future.done()
    client.jobs[0].end()
    return future


@pytest.mark.parametrize("status", ["finished", "pending", "lost"])
def test_a_result_that_was_fetched_is_one(status: str) -> None:
    """Two outcomes are two outcomes, though their worker may have died since."""
    assert carried(["one", "two"], status).result() == ["one", "two"]


def test_errors_and_ends_are_passed_on() -> None:
    """An error of a job is its error; what a cluster that goes away cancels is cancelled."""
    with pytest.raises(KeyError, match="x"):
        carried(KeyError("x")).result()
    with pytest.raises(CancelledError):
        carried(CancelledError()).result()


def test_what_is_left_is_cancelled() -> None:
    """At the end the cluster is told of jobs that are not over, and of no others."""
    client = Client("pending")
    executor = _OnCluster(client)
    for job in range(3):
        executor.submit(lambda job: job, job)
    client.jobs[1].end()
    executor.shutdown(wait=False)
    assert sorted(job.answer for job in client.cancelled) == [0, 2]
