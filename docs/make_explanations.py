"""Write `docs/explanations.md` and its pictures: `python docs/make_explanations.py`.

`python docs/make_explanations.py page.html` writes the same explanations as notebooks show them to a file.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = CHECKOUT / "docs" / "explanations.md"
PICTURES: Final = CHECKOUT / "docs" / "images" / "explanations"

sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

import xarr  # noqa: E402
from xarr.explainers.recorded_ops import Explained  # noqa: E402
from xarr.explainers.written_calls import explain_any  # noqa: E402


@dataclass(frozen=True)
class Example:
    """A text to explain, under a title, with what there is to see, and the function of `xarr` that does the same."""

    name: str
    title: str
    text: str
    words: str
    function: str

    @property
    def explanation(self) -> Explained:
        return explain_any(self.text)


EXAMPLES: Final = (
    Example(
        "broadcast",
        "A broadcast",
        "(4,1) + (3,)",
        "New axes and stretched axes have marks of their own: XLA treats them differently.",
        'explain_broadcast((4, 1), (3,), op="+")',
    ),
    Example(
        "surprise",
        "A broadcast that was not meant",
        "(5,1) - (5,)",
        "Both have five elements, the result has 25: the text says OUTER, and what was probably meant.",
        'explain_broadcast((5, 1), (5,), op="-")',
    ),
    Example(
        "ambiguous",
        "A broadcast that could be another",
        "(3,3) + (3,)",
        "Two alignments fit; the text names the one that NumPy does not take.",
        "explain_broadcast((3, 3), (3,))",
    ),
    Example(
        "clash",
        "A broadcast that fails",
        "(3,4) + (3,)",
        "Shapes line up from the right; the red cells are those that are missing, and the fixes run as they stand.",
        "explain_broadcast((3, 4), (3,))",
    ),
    Example(
        "channels",
        "A number for each channel",
        "(2,3,4) - (3,1)",
        "New axes in front and behind: only the axis of three is there in both.",
        'explain_broadcast((2, 3, 4), (3, 1), op="-")',
    ),
    Example(
        "matmul",
        "A product of matrices",
        "f32[2,3] @ f32[3,4]",
        "A row of the first meets a column of the second.",
        'explain_matmul("f32[2,3]", "f32[3,4]")',
    ),
    Example(
        "einsum",
        "Einsum",
        'einsum("bij,bjk->bik", (2,2,3), (2,3,2))',
        "A letter that the result lacks is summed over, one that all have runs along.",
        'explain_einsum("bij,bjk->bik", (2, 2, 3), (2, 3, 2))',
    ),
    Example(
        "reduction",
        "A reduction",
        "sum((3,4), axis=1)",
        "The axis that is named is the one that goes. Cells of one colour become one element.",
        "explain_reduce((3, 4), axis=1)",
    ),
    Example(
        "pooling",
        "Pooling",
        'max_pool((6,6), 3, strides=2, padding="SAME")',
        "Padding takes no part; the table says how many windows fit.",
        'explain_window((6, 6), 3, strides=2, padding="SAME")',
    ),
    Example(
        "convolution",
        "A convolution with dilation",
        "conv((7,7), 2, window_dilation=3)",
        "The elements of one window are three apart.",
        'explain_window((7, 7), 2, window_dilation=3, op="conv")',
    ),
    Example(
        "transposed",
        "A transposed convolution",
        "conv((5,), 3, padding=2, base_dilation=2)",
        "Holes between the elements of the array, and padding around them.",
        'explain_window((5,), 3, padding=2, base_dilation=2, op="conv")',
    ),
    Example(
        "index",
        "An index",
        "(4,5)[1:, None, [0, 2]]",
        "Each item of the index is about some dimensions, and makes some of the result.",
        "explain_index((4, 5), xarr.s_[1:, None, [0, 2]])",
    ),
    Example(
        "gather",
        "A gather",
        "gather((5,4), [[0],[3],[9]], (1,4), offset_dims=1, collapsed_slice_dims=0, start_index_map=0)",
        "Windows are read where the indices say; what is out of bounds is moved, and said.",
        "explain_gather(lambda: lax.gather_rows(table, indices))",
    ),
    Example(
        "scatter",
        "A scatter",
        "scatter((5,4), [[0],[3]], (2,4), update_window_dims=(1,), inserted_window_dims=(0,), "
        "scatter_dims_to_operand_dims=(0,))",
        "The opposite: each window is written to where its index says.",
        "explain_scatter((5, 4), (2, 1), (2, 4), numbers)",
    ),
    Example(
        "layout",
        "A layout",
        "f32[3,4]{0,1}",
        "Above the array with the offset of each element, below memory with the index that lies there.",
        'explain_layout("f32[3,4]", "{0,1}")',
    ),
    Example(
        "dtype",
        "A promotion",
        "dtype(int64, f32)",
        "The lattice of element types, and the path of each operand to the result.",
        'explain_dtype("int64", "f32")',
    ),
    Example(
        "collective",
        "A collective",
        "all_reduce(f32[65536], 4)",
        "Each line is a message from one replica to another; the text counts them, and how long they take on a link.",
        'explain_collective("all_reduce", "f32[65536]", 4)',
    ),
)

_HEAD: Final = """\
# Explanations

<!-- Written by docs/make_explanations.py: change that and run it. -->

Every explanation can be shown as text, as a picture (`.svg()`), as a fragment of a page (`.html()`, which notebooks
show: cells light up what they read, the picture comes to be step by step, and the code is there in several languages),
and as data (`.to_dict()`). The steps are the same everywhere, in the text below `steps`: one element of the result is
followed from what it needs to what it becomes, or an index, an axis, a type on its way. As data they are `.steps()`;
those of a broadcast, which its table says as well, are left out of its text, and a collective has steps where it takes
two to seven rounds.
`python -m xarr explain "…"` takes the text above each picture, with `--format text`, `html`, `svg` or `json`, and so
does `xarr.explain("…")`. `xarr.explain(f)` of a function lists all of these that it makes, with the source lines.

A fragment has 30 kB at most, whatever it explains: where that is too little nothing is shown on hovering, then the
tables, code and texts are folded, then the picture is left out, and a line says what is missing and where it stands.
Pictures of many arrays or replicas draw fewer cells of each. What `xarr.explain(f)` lists, and an expression of several
operations, has a fragment for each of them, with one style and script for all.
"""


_GRAPH: Final = """\
## A graph

A program as it was recorded, or after a stage of compiling, has a picture: `graph.svg()`, which notebooks show. Boxes
are operations with the type and the bytes of what they give, lines are arrays, wider ones of more bytes; numbers are
written where they are used; groups, loops and branches have inside what they run. Of more than 200 operations the
middle is folded.

`tanh(x @ weights + bias).mean(axis=1)` as a function `f`, after the stage that makes groups, is
`xarr.jit(f).lower("f32[64,32]", "f32[32,16]", "f32[16]").stage("fused").svg()`:

![A product of matrices, and a group that adds the bias, takes tanh and the mean](images/explanations/graph.svg)
"""


def layer(x: xarr.Array, weights: xarr.Array, bias: xarr.Array) -> xarr.Array:
    """One layer of a network, and the mean of what it gives."""
    return xarr.tanh(x @ weights + bias).mean(axis=1)


def pictures() -> dict[str, str]:
    """The SVG documents of all examples, and of a graph."""
    drawn = {example.name: example.explanation.svg() for example in EXAMPLES}
    fused = xarr.jit(layer).lower("f32[64,32]", "f32[32,16]", "f32[16]").stage("fused")
    return {name: f"{svg}\n" for name, svg in {**drawn, "graph": fused.svg()}.items()}


def page() -> str:
    """The page, as it should be."""
    return "\n".join([_HEAD, *map(_section, EXAMPLES), _GRAPH])


def _section(example: Example) -> str:
    text = example.explanation.text().rstrip()
    alternative = " ".join(text.split("\n")[0].split()).replace("[", "\\[").replace("]", "\\]")
    return f"""\
## {example.title}

{example.words}

`{example.text}`, or `xarr.{example.function}`:

![{alternative}](images/explanations/{example.name}.svg)

```text
{text}
```
"""


def html() -> str:
    """A page of the fragments that notebooks show."""
    parts = [f"<h2>{example.title}</h2>\n{example.explanation.html()}" for example in EXAMPLES]
    head = (
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    )
    return f"{head}<title>Explanations</title>\n<body>{''.join(parts)}</body></html>\n"


def write() -> None:
    """Write the page and the pictures."""
    PICTURES.mkdir(exist_ok=True)
    for name, svg in pictures().items():
        (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(html(), encoding="utf-8")
    else:
        write()
