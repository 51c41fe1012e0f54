"""Who sends how much to whom: counted by running the collective."""

from __future__ import annotations

import resource
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import xarr
from tests.support.explained import check_views
from xarr import explain_collective
from xarr.distributed import Link
from xarr.errors import InputError, ShapeError, ValueRangeError

UNIT = Link("a link of one byte a second", latency=1.0, bandwidth=1.0, overhead=1.0)


def test_a_large_all_reduce_is_two_rounds_of_parts() -> None:
    explained = explain_collective("all_reduce", "f32[65536]", 4)
    assert explained.rounds == 2
    assert len(explained.messages) == 2 * 4 * 3
    assert {each.nbytes for each in explained.messages} == {65536}
    assert explained.link_bytes() == 131072
    lines = explained.text().splitlines()
    assert lines[0] == "all_reduce of f32[65536] at 4 replicas, 262,144 bytes each"
    assert "  1      0        1, 2, 3   65,536" in lines
    assert "  messages  24 in 2 rounds, 1,572,864 bytes in all; the busiest link carries 131,072" in lines


def test_a_small_one_of_many_replicas_doubles() -> None:
    explained = explain_collective("all_reduce", np.zeros(2, np.float32), 16)
    assert explained.rounds == 4
    assert sorted({each.nbytes for each in explained.messages}) == [8, 16, 32, 64]


@pytest.mark.parametrize(
    ("name", "messages", "rounds", "nbytes"),
    [
        ("all_gather", 12, 1, {64}),
        ("reduce_scatter", 12, 1, {16}),
        ("all_to_all", 12, 1, {16}),
        ("collective_broadcast", 3, 1, {64}),
        ("collective_permute", 4, 1, {64}),
        ("send", 4, 1, {64}),
        ("recv", 4, 1, {64}),
    ],
)
def test_other_collectives(name: str, messages: int, rounds: int, nbytes: set[int]) -> None:
    explained = explain_collective(name, "f32[4,4]", 4)
    assert (len(explained.messages), explained.rounds) == (messages, rounds)
    assert {each.nbytes for each in explained.messages} == nbytes


@pytest.mark.parametrize("name", ["send", "recv"])
def test_an_array_that_is_sent_goes_in_one_round(name: str) -> None:
    explained = explain_collective(name, "f32[8]", 4, pairs=[(0, 2), (3, 1)])
    assert [(each.round, each.source, each.target) for each in explained.messages] == [(1, 0, 2), (1, 3, 1)]
    assert f"{name} of f32[8] at 4 replicas, 32 bytes each" in explained.text()


def test_the_pairs_of_a_permutation() -> None:
    explained = explain_collective("collective_permute", "f64[1]", 3, pairs=[(0, 2)])
    assert [(each.source, each.target) for each in explained.messages] == [(0, 2)]


def test_seconds_are_those_of_the_busiest_replica_of_each_round() -> None:
    assert explain_collective("all_gather", "s8[4]", 3, link=UNIT).seconds() == 1 + 2 * 4 + 2
    assert "11 s on a link of one byte a second: 1 s of latency" in str(
        explain_collective("all_gather", "s8[4]", 3, link=UNIT)
    )


def test_rounds_are_steps() -> None:
    explained = explain_collective("all_reduce", "f32[65536]", 4)
    assert [step.name for step in explained.steps()] == ["round 1", "round 2"]
    assert explained.steps()[0].text.startswith("12 messages of 65,536 bytes, sent by 4 replicas; ")
    html = explained.html()
    assert html.count("<li>") == 2 and "<script>" in html and html.count(' p2"') == 4 + 12 + 2
    assert "1 round 1: 12 messages" in explained.text() and "2 round 2: 12 messages" in explained.svg()
    check_views(explained)
    assert explain_collective("all_gather", "f32[2]", 4).steps() == ()  # one round
    assert len(explain_collective("all_reduce", "f32[2]", 64).steps()) == 6
    assert explain_collective("all_reduce", "f32[1024]", 1).steps() == ()


def test_one_replica_sends_nothing() -> None:
    explained = explain_collective("all_reduce", xarr.zeros(3), 1)
    assert (explained.rounds, explained.seconds(), explained.link_bytes()) == (0, 0, 0)
    assert explained.text().endswith("nothing is sent")
    ET.fromstring(explained.svg())


@pytest.mark.parametrize("n", [2, 5, 30])
def test_the_picture_has_a_line_for_each_message_that_is_drawn(n: int) -> None:
    explained = explain_collective("all_gather", "f32[2]", n)
    picture = ET.fromstring(explained.svg())
    lines = [each for each in picture.iter() if each.tag.endswith("path")]
    drawn = [each for each in explained.messages if max(each.source, each.target) < 16]
    assert len(lines) == len(drawn)
    assert ("not drawn" in explained.svg()) == (n > 16)
    assert explained._repr_html_() == explained.html()


def test_what_cannot_be_explained_is_refused() -> None:
    with pytest.raises(InputError, match="wanted name to be one of all_reduce, all_gather"):
        explain_collective("reduce", "f32[2]", 2)
    with pytest.raises(ValueRangeError, match="wanted 1 to 64 replicas, got 65"):
        explain_collective("all_gather", "f32[2]", 65)
    for pairs in ([(0, 2)], [(-1, 0)], [(0, 1), (1, 1)], [(0, 1), (0, 0)]):
        with pytest.raises(
            ValueRangeError, match=r"wanted pairs .* of replicas from 0 to 1, each at most once"
        ):
            explain_collective("collective_permute", "f32[2]", 2, pairs=pairs)
    with pytest.raises(ShapeError, match="wanted a first dimension that 3 divides"):
        explain_collective("all_to_all", "f32[4]", 3)


@pytest.mark.parametrize("n", [1, 3, 20])
@pytest.mark.parametrize("name", ["all_reduce", "all_to_all", "collective_permute"])
def test_all_views_have_the_same_facts(name: str, n: int) -> None:
    explained = explain_collective(name, f"f32[{n},4]", n)
    facts = check_views(explained)
    assert facts["op"] == name and facts["replicas"] == n and facts["rounds"] == explained.rounds
    assert len(facts["messages"]) == len(explained.messages)
    assert facts["operand"] == {"shape": [n, 4], "dtype": "f32"}
    for label, line in explained.notes():
        assert line in explained.text() and f"{label}: {line}" in explained.html()


def _peak() -> int:
    """The most bytes that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is in other units elsewhere")
@pytest.mark.parametrize("name", ["all_reduce", "all_gather", "collective_broadcast", "collective_permute"])
def test_memory_of_large_operands_is_not_touched(name: str) -> None:
    before = _peak()
    explained = explain_collective(name, f"s8[{2**28}]", 4)
    assert sum(each.nbytes for each in explained.messages) >= 3 * 2**28
    assert _peak() - before < 2**27


def test_what_is_too_large_is_said() -> None:
    with pytest.raises(ValueRangeError, match="wanted an operand of which 2 fit into memory"):
        explain_collective("all_gather", f"s8[{2**60}]", 2)
