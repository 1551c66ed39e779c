"""Whatever a file holds, there is an answer or one clear line, in time, and no other file opened.

Some spoilt files of each kind here; ``python -m tests.fuzzing TARGET`` looks at as many as there
is time for.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzzing import seeds
from tests.fuzzing.campaign import Campaign
from tests.fuzzing.targets import TARGETS

SPOILT = 12
"""Files of each kind that are tried."""

SETTINGS = settings(
    max_examples=SPOILT,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@cache
def good(name: str) -> tuple[bytes, ...]:
    """Return the files to begin with; all others that targets need are read, too."""
    seeds.graphs(), seeds.any_instance(), seeds.any_network()
    return tuple(TARGETS[name].seeds())


@pytest.mark.parametrize("name", TARGETS)
@SETTINGS
@given(which=st.integers(0, 99), seed=st.integers(0, 2**32))
def test_spoilt_files_are_refused_or_read(name: str, which: int, seed: int, tmp_path: Path) -> None:
    """Of each kind some files, spoilt up to three times, leave no finding."""
    raw, draw = good(name)[which % len(good(name))], random.Random(seed)
    campaign = Campaign(TARGETS[name], tmp_path, tmp_path)
    for _ in range(draw.randint(1, 3)):
        raw = campaign.mutated(raw, draw)
    campaign.run(raw)
    assert not [path.read_text() for path in tmp_path.glob("*.txt")]


@pytest.mark.parametrize("name", TARGETS)
@given(raw=st.binary(max_size=64))
@SETTINGS
def test_any_bytes_are_refused_or_read(name: str, raw: bytes, tmp_path: Path) -> None:
    """Bytes that are nothing at all leave no finding."""
    assert good(name)
    Campaign(TARGETS[name], tmp_path, tmp_path).run(raw)
    assert not [path.read_text() for path in tmp_path.glob("*.txt")]


@pytest.mark.parametrize("name", TARGETS)
def test_good_files_are_taken(name: str, tmp_path: Path) -> None:
    """The files that spoilt ones are made of are not refused, so that more than doors is tried."""
    campaign = Campaign(TARGETS[name], tmp_path, tmp_path)
    for raw in good(name)[:6]:
        campaign.run(raw)
    assert campaign.taken == len(good(name)[:6])


@pytest.mark.parametrize("name", TARGETS)
def test_each_way_to_spoil_a_file_spoils_it(name: str) -> None:
    """Each mutation makes other bytes in one of twenty tries; equal draws make equal ones."""
    for mutation in TARGETS[name].mutations:
        spoilt = [mutation(good(name)[0], random.Random(seed)) for seed in range(20)]
        assert any(raw != good(name)[0] for raw in spoilt)
        assert spoilt[3] == mutation(good(name)[0], random.Random(3))
