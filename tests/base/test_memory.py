"""Memory: what is available, what is limited, and what stops before it is full."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from layoutopt import Limits, Stopped, memory_limit
from layoutopt.base import limits as base_limits
from layoutopt.base.errors import SizeError
from layoutopt.base.limits import available_memory, memory_full, memory_taken, require
from tests.support import refused

GIB = 2**30

linux = pytest.mark.skipif(
    not Path("/proc/self/statm").is_file(), reason="the limit is what Linux holds"
)


@pytest.fixture(autouse=True)
def look_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget at the end what was seen of made-up machines."""
    monkeypatch.setattr(base_limits, "_looked", [0.0, False])


def limit() -> int:
    return resource.getrlimit(resource.RLIMIT_DATA)[0]


@linux
def test_a_limit_is_for_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within, what is available is what the limit leaves; afterwards all is as before."""
    monkeypatch.setattr(base_limits, "_machine", lambda: 100 * GIB)
    monkeypatch.setattr(base_limits, "_container", lambda: None)
    before, size = limit(), (memory_taken() or 0) + GIB
    with memory_limit(size):
        assert limit() == size
        free = available_memory()
        assert free is not None
        assert GIB / 2 < free <= GIB
        with memory_limit(2 * size):
            assert limit() == size  # the lower one holds
        with memory_limit(None):
            assert limit() == size
    assert limit() == before


@linux
def test_blocks_may_end_in_any_order() -> None:
    """As those of two threads do: a limit holds while its own block lasts, the lowest one wins."""
    before, size = limit(), (memory_taken() or 0) + GIB
    low, high = memory_limit(size), memory_limit(2 * size)
    low.__enter__()
    high.__enter__()
    assert limit() == size
    low.__exit__(None, None, None)
    assert limit() == 2 * size
    high.__exit__(None, None, None)
    assert limit() == before


@linux
def test_what_does_not_fit_is_refused() -> None:
    """Estimates are held against the limit, and the error names it; arrays are not given."""
    import numpy as np

    with memory_limit((memory_taken() or 0) + GIB // 2):
        with pytest.raises(SizeError, match="the rest needs about 1 GiB; the memory limit leaves"):
            require(GIB, "the rest")
        with pytest.raises(MemoryError):
            np.ones(GIB, np.int8)
    require(GIB // 2**10, "the rest")


@linux
def test_searches_stop_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nine tenths taken limits say stop, for good, though memory is freed again."""
    monkeypatch.setattr(base_limits, "LOOK", 0.0)
    limits = Limits()
    with memory_limit((memory_taken() or 0) * 2):
        assert not memory_full()
        assert limits.stopped is None
    with memory_limit((memory_taken() or 0) + (memory_taken() or 0) // 20):
        assert memory_full()
        assert limits.stopped is Stopped.MEMORY_LIMIT
    assert not memory_full()
    assert limits.stopped is Stopped.MEMORY_LIMIT
    assert Limits().stopped is None


def test_a_machine_that_is_full_stops_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any limit the machine's memory is one, or that of a container."""
    monkeypatch.setattr(base_limits, "LOOK", 0.0)
    monkeypatch.setattr(base_limits, "_container", lambda: None)
    monkeypatch.setattr(base_limits, "_machine", lambda: base_limits.RESERVE - 1)
    assert memory_full()
    monkeypatch.setattr(base_limits, "_machine", lambda: base_limits.RESERVE)
    assert not memory_full()
    monkeypatch.setattr(base_limits, "_container", lambda: base_limits.RESERVE - 1)
    assert memory_full()


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({}, None),
        ({"memory.max": "max\n", "memory.current": "7\n", "memory.stat": ""}, None),
        (
            {
                "memory.max": "1000\n",
                "memory.current": "700\n",
                "memory.stat": "anon 300\nactive_file 50\ninactive_file 200\n",
            },
            550,
        ),
        (
            {
                "memory/memory.limit_in_bytes": "1000\n",
                "memory/memory.usage_in_bytes": "400\n",
                "memory/memory.stat": "rss 300\ninactive_file 10\n",
            },
            610,
        ),
        (
            {
                "memory/memory.limit_in_bytes": "9223372036854771712\n",
                "memory/memory.usage_in_bytes": "400\n",
                "memory/memory.stat": "",
            },
            None,
        ),
    ],
)
def test_containers(
    files: dict[str, str], left: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways in which Linux tells limits of containers are understood; caches do not count."""
    monkeypatch.setattr(base_limits, "GROUPS", tmp_path)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(base_limits, "_machine", lambda: None)
    assert available_memory() == left


def test_wrong_limits() -> None:
    """What is no size, or less than is taken, is refused in a line, and changes nothing."""
    before = limit()
    for wrong in ("much", "0", "-1", "4X", "9" * 40, "", "G", "-1G", "2X", "1e9"):
        with refused(f"invalid size of memory {wrong!r}"), memory_limit(wrong):
            pass
    with refused("memory limit 1M is exceeded already: ", " MiB are in use"), memory_limit("1M"):
        pass
    assert limit() == before


def test_systems_without_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system knows no limits of processes none can be set, and nothing else changes."""
    monkeypatch.setattr(base_limits, "_resource", lambda: None)
    with refused("this system does not support memory limits"), base_limits.memory_limit("4G"):
        pass
    with base_limits.memory_limit(None):
        assert not memory_full()
