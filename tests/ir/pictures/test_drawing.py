"""Pictures of graphs: what they show, that all of it can be read, and that faults of them are noticed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

import xarr
from tests.support.contrast import LOW_CONTRAST
from tests.support.drawn_graphs import problems_of, read_picture
from tests.support.graphs import CASES
from tests.support.play_site import open_browser
from xarr import lax
from xarr.ir.graph import Graph
from xarr.ir.ops import Add


def graph_of(function: Callable[..., Any], *arguments: Any, stage: str = "traced") -> Graph:
    with xarr.config(fusion="auto", backend="numpy"):  # whichever engine the run is about
        graph = xarr.jit(function).lower(*arguments).stage(stage)
    assert isinstance(graph, Graph)
    return graph


def network(x: Any, w: Any, b: Any) -> Any:
    """A layer three times, and a loop."""
    for _ in range(3):
        x = xarr.tanh(x @ w + lax.broadcast_in_dim(b, (8, 8), (1,)))
    return lax.fori_loop(
        0, 5, lambda i, y: lax.cond(y[0, 0] > 1, lambda z: z * 0.5, lambda z: z @ z, y), x
    ), x.sum()


NETWORK = graph_of(network, "f32[8,8]", "f32[8,8]", "f32[8]")


def chain(count: int) -> Graph:
    """Many ops, each of which takes the result of the last one and of an earlier one."""

    def function(x: Any, y: Any) -> Any:
        values = [x, y]
        for step in range(count):
            values.append(values[-1] + values[max(0, len(values) - 2 - step % 7)])
        return values[-1], values[count // 2]

    return graph_of(function, "f64[3]", "f64[3]")


def many_arguments(count: int) -> Graph:
    return graph_of(lambda *xs: [a * b for a, b in pairwise(xs)], *["f32[2]"] * count)


def loops(count: int) -> Graph:
    """Loops one after the other, each with two results."""

    def function(x: Any, y: Any) -> Any:
        for step in range(count):
            x, y = lax.while_loop(
                lambda pair, end=step: pair[1] < end, lambda pair: (pair[1] * 2.0, pair[0] + 1.0), (x, y)
            )
        return x, y

    return graph_of(function, "f64[]", "f64[]")


GRAPHS = {
    "loops": loops(3),
    "folded loops": loops(230),
    "network": NETWORK,
    "fused": graph_of(network, "f32[8,8]", "f32[8,8]", "f32[8]", stage="fused"),
    "chain": chain(60),
    "folded": chain(700),
    "arguments": many_arguments(70),
    "constant": graph_of(lambda: xarr.zeros(3)),
    "identity": graph_of(lambda x: (x, x), "f32[3]"),
    "unused": graph_of(lambda x, y: x * 2, "f32[3]", "f32[3]"),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_all_can_be_read(name: str) -> None:
    assert problems_of(GRAPHS[name].svg()) == []


@pytest.mark.parametrize("name", CASES)
def test_every_operation_can_be_read(name: str) -> None:
    assert problems_of(CASES[name].graph.svg()) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (r'(<rect x=")(\d+)', r"\g<1>0", "overlap"),
        (r'(class="t">)add<', r"\g<1>add of many words that no box is wide enough for<", "not within"),
        (r"L[^L]*(L[^L\"]*\" class=\"l\")", r"\1", "crosses"),
        (r'(<svg [^>]*width=")\d+', r"\g<1>9", "beyond the sheet"),
    ],
)
def test_what_cannot_be_read_is_noticed(old: str, new: str, words: str) -> None:
    broken = re.sub(old, new, NETWORK.svg())
    assert any(words in each for each in problems_of(broken)), problems_of(broken)


def test_texts_that_overlap_are_noticed() -> None:
    assert any(
        "texts" in each
        for each in problems_of(re.sub(r'y="\d+(\.\d)?" class="d"', 'y="9" class="d"', NETWORK.svg()))
    )


def test_a_picture_says_what_there_is() -> None:
    texts = [each.words for each, _ in read_picture(NETWORK.svg()).texts]
    assert texts[0].startswith("network: ")
    assert {
        "argument 0",
        "f32[8,8] 256 B",
        "tanh",
        "result 0",
        "result 1",
        "while_loop",
        "cond",
        "body",
    } <= set(texts)
    assert any(each.startswith("lhs_contracting_dimensions [1]") for each in texts)
    assert "reduce add(·, 0.0)" in texts
    assert "true branch" in texts and "false branch" in texts


def test_numbers_are_written_where_they_are_used() -> None:
    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + xarr.tanh(0.75 * (x - 3)))

    drawn = read_picture(graph_of(gelu, "f32[4,3]", stage="simplified").svg())
    names = {text.words for text, own in drawn.texts if own}
    assert {"mul(0.5, ·)", "mul(0.75, ·)", "tanh", "mul"} <= names and "constant" not in names
    assert any(each.startswith(("sub(·, 3.0)", "add(·, -3.0)")) for each in names)
    assert len(drawn.lines) == 8


def test_numbers_that_are_no_operand_of_one_operation_have_a_box() -> None:
    def function(x: Any, y: Any) -> Any:
        looped = lax.fori_loop(0, 5, lambda i, pair: (pair[0] * pair[1], pair[1]), (x, xarr.full(3, 2.5)))
        many = lax.concatenate([*[x] * 14, xarr.full(3, 4.5)], 0)
        return looped[0], many, xarr.full(3, 1.5), y * 6.5

    svg = graph_of(function, "f64[3]", "f64[3]").svg()
    assert problems_of(svg) == []
    names = [text.words for text, own in read_picture(svg).texts if own]
    assert {"broadcast_in_dim(2.5)", "broadcast_in_dim(4.5)", "broadcast_in_dim(1.5)", "mul(·, 6.5)"} <= {
        *names
    }
    assert "concatenate" in names and "6.5" not in names


def test_groups_have_their_operations_inside() -> None:
    drawn = read_picture(GRAPHS["fused"].svg())
    groups = [
        box for box in drawn.boxes if box.words.split("\n")[-1].find("group") >= 0 or " group" in box.words
    ]
    inside = [
        text.words
        for text, own in drawn.texts
        for group in groups
        if own and own is not group and group.holds(text)
    ]
    assert groups and "tanh" in inside


def test_the_order_of_operands_is_that_of_the_lines() -> None:
    drawn = read_picture(graph_of(lambda x, y: y - x, "f32[3]", "f32[3]").svg())
    ends = {line[0]: line[-1][0] for line in drawn.lines}
    left, right = sorted(ends.values())[:2]
    sources = {
        end: next(b.words for b in drawn.boxes if b.left < x < b.right and abs(b.bottom - y) < 1)
        for (x, y), end in ends.items()
    }
    assert left < right
    subtraction = [box for box in drawn.boxes if "sub" in box.words.split("\n")[0]]
    ports = sorted(end for end in ends.values() if any(box.left < end < box.right for box in subtraction))
    assert "argument 1" in sources[ports[0]]


def test_long_graphs_are_folded() -> None:
    texts = [each.words for each, _ in read_picture(GRAPHS["folded"].svg()).texts]
    assert any(re.fullmatch(r"\d+ operations, not drawn", each) for each in texts)
    assert len(read_picture(GRAPHS["folded"].svg()).boxes) < 320
    texts = [each.words for each, _ in read_picture(GRAPHS["arguments"].svg()).texts]
    assert "arguments 12 to 57" in texts and "results 12 to 56" in texts


def test_a_large_graph_takes_no_more_than_its_nodes() -> None:
    calls = 0

    def count(node: Any, own: Any = Add.result_number) -> Any:
        nonlocal calls
        calls += 1
        return own(node.op, node)

    graph = chain(3000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Add, "result_number", lambda op, node: count(node))
        graph.svg()
    assert 3000 <= calls < 10_000


def test_a_picture_is_small_well_formed_and_says_itself_in_words() -> None:
    svg = NETWORK.svg()
    root = ElementTree.fromstring(svg)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"].startswith("Graph network: ") and "3 tanh" in root.attrib["aria-label"]
    assert not re.search(r"(src|href)=|url\(|@import|https?://(?!www\.w3\.org)", svg)
    assert all(each.find("{http://www.w3.org/2000/svg}title") is not None for each in root.iter("g"))
    assert len(GRAPHS["folded"].svg()) < 200_000


def test_a_picture_is_the_same_each_time() -> None:
    again = graph_of(network, "f32[8,8]", "f32[8,8]", "f32[8]")
    without_lines = [re.sub(r"\S+\.py:\d+", "", graph.svg()) for graph in (NETWORK, again)]
    assert without_lines[0] == without_lines[1]


def test_notebooks_show_the_picture_and_the_text() -> None:
    html = NETWORK._repr_html_()
    assert NETWORK.svg() in html and "stablehlo.dot_general" in html
    long = GRAPHS["folded"]._repr_html_()
    assert 250 < long.partition("<pre")[2].count("stablehlo.add") < 301 and long.endswith(
        "\N{HORIZONTAL ELLIPSIS}</pre></details>"
    )
    ElementTree.fromstring(f"<p>{long}</p>")


def test_nothing_is_evaluated() -> None:
    x = xarr.ones(3) + 1
    graph = xarr.lower(lambda: x * 2).graph
    assert graph.svg()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_draws_texts_within_their_boxes(browser: Any, scheme: str) -> None:
    page = browser.new_page(color_scheme=scheme, viewport={"width": 1400, "height": 900})
    page.set_content(
        f'<!DOCTYPE html><meta name="color-scheme" content="light dark"><body>{NETWORK.svg()}</body>'
    )
    outside = """() => [...document.querySelectorAll('g')].filter(g => {
      const box = g.querySelector('rect').getBBox();
      return [...g.querySelectorAll('text')].some(t => {
        const own = t.getBBox();
        return own.x < box.x || own.x + own.width > box.x + box.width;
      });
    }).length"""
    assert page.evaluate(outside) == 0
    assert page.evaluate(LOW_CONTRAST) == []
    page.evaluate("document.querySelectorAll('rect[rx]').forEach(r => r.setAttribute('width', '20'))")
    assert page.evaluate(outside) > 0
