"""Explanations as self-contained HTML fragments of bounded size: what all kinds share, and the view of a broadcast."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape

from xarr.base.broadcasting import ambiguous_alternatives
from xarr.explanation.broadcast_code import (
    AlignmentStep,
    Suggestion,
    Warn,
    explicit_ops,
    loop_nest,
    memory,
    new_axis_spelling,
    one_op,
    reuse,
    stablehlo,
    steps,
    suggestions,
    warnings,
)
from xarr.explanation.broadcast_facts import BroadcastFacts
from xarr.explanation.folds import MEASURES, PageFold, count_bytes
from xarr.explanation.steps import PictureStep, render_steps
from xarr.explanation.svg import STYLE as PICTURE_STYLE, render_svg
from xarr.explanation.text import cell_text, headline, how, no_suggestion, problem_lines


class Displayed:
    """An explanation that Python prints as plain text and notebooks show as HTML."""

    def text(self) -> str:
        """Plain text."""
        raise NotImplementedError

    def html(self) -> str:
        """A self-contained HTML fragment."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.html()


_STYLE = (
    ".xarr-e{font:14px/1.45 system-ui,sans-serif;color:#1b1b1b;background:#fff;padding:12px 16px}"
    ".xarr-e{overflow-x:auto}"
    ".xarr-e code,.xarr-e pre{font:13px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}"
    ".xarr-e code{white-space:pre-wrap;overflow-wrap:anywhere}.xarr-e td code{overflow-wrap:normal}"
    ".xarr-e pre{margin:4px 0 10px;padding:8px 10px;background:#f2f3f5;overflow-x:auto;color:inherit}"
    ".xarr-e table{border-collapse:collapse;margin:8px 0;color:inherit;font:inherit}"
    ".xarr-e td,.xarr-e th{border:1px solid #b9bcc2;padding:2px 10px;text-align:left!important;"
    "color:inherit;background:none}.xarr-e tr{background:none!important}"
    ".xarr-e .new{border:2px dashed #7a4d9e}.xarr-e .stretched{border:2px solid #333}"
    "@media(max-width:400px){.xarr-e td,.xarr-e th{padding:2px 4px}.xarr-e{padding:12px 8px}}"
    ".xarr-e .clash{border:3px solid #c8102e;background:#fbd9d9;font-weight:700}"
    ".xarr-e .w{color:#a63d00;margin:6px 0}"
    ".xarr-e summary{cursor:pointer;font-weight:600}.xarr-e svg{display:block}"
    ".xarr-e button{font:inherit;color:inherit;background:none;border:1px solid #b9bcc2;padding:2px 10px;"
    "margin:0 4px 0 0;cursor:pointer}.xarr-e button[aria-pressed=true]{font-weight:700;border-width:2px;"
    "border-color:#333}.xarr-e .copy{float:right}.xarr-e .steps{margin:8px 0;padding-left:24px}"
    ".xarr-e[data-wired] .steps{list-style:none;padding:0}.xarr-e details details{margin:0}"
    ".xarr-e svg g,.xarr-e svg path,.xarr-e svg text{transition:opacity .3s}"
    "@media(prefers-reduced-motion:reduce){.xarr-e svg *{transition:none!important}}"
    "@media(prefers-color-scheme:dark){.xarr-e{color:#ececec;background:#16181d}"
    ".xarr-e pre{background:#24272e}"
    ".xarr-e td,.xarr-e th{border-color:#555a63}.xarr-e .new{border-color:#c59be8}"
    ".xarr-e button[aria-pressed=true]{border-color:#ddd}"
    ".xarr-e .stretched{border-color:#ddd}.xarr-e .clash{border-color:#ff6b6b;background:#571a20}"
    ".xarr-e .w{color:#ff9d5c}}"
)

# Every fragment of the page is wired once, whichever script runs first, and only within itself: a page
# may hold the same explanation twice, and notebooks run scripts where `currentScript` is null.
_SCRIPT = """
document.querySelectorAll('.xarr-e:not([data-wired])').forEach(root => {
  root.dataset.wired = '1';
  root.querySelectorAll('svg').forEach(svg => {
    const results = [...svg.querySelectorAll('[data-reads]')];
    const cells = new Map([...svg.querySelectorAll('[data-cell]')].map(cell => [cell.dataset.cell, cell]));
    const reads = result => result.dataset.reads.split(' ');
    const light = (event, on) => {
      const hit = event.target.closest('[data-reads],[data-cell]');
      if (!hit) return;
      hit.classList.toggle('lit', on);
      if (hit.dataset.reads) reads(hit).forEach(key => cells.get(key)?.classList.toggle('lit', on));
      else results.filter(r => reads(r).includes(hit.dataset.cell)).forEach(r => r.classList.toggle('lit', on));
    };
    svg.addEventListener('mouseover', event => light(event, true));
    svg.addEventListener('mouseout', event => light(event, false));
  });
  const button = (bar, text, act) => {
    const made = document.createElement('button');
    [made.type, made.textContent, made.onclick] = ['button', text, act];
    return bar.appendChild(made);
  };
  const choose = (parts, texts, before, act) => {
    const bar = document.createElement('div');
    const press = chosen => parts.forEach((part, i) => {
      part.hidden = i !== chosen;
      buttons[i].setAttribute('aria-pressed', i === chosen);
      if (i === chosen) act?.(i);
    });
    const buttons = parts.map((part, i) => button(bar, texts[i], () => press(i)));
    bar.onkeydown = event => {
      const by = {ArrowRight: 1, ArrowLeft: -1}[event.key], next = buttons[buttons.indexOf(event.target) + by];
      if (next) [event.preventDefault(), next.focus(), next.click()];
    };
    before.before(bar);
    return [bar, press];
  };
  root.querySelectorAll('.steps').forEach(list => {
    const items = [...list.children], box = list.parentElement;
    list.setAttribute('aria-live', 'polite');
    const texts = items.map((item, i) => `${i + 1} ${item.querySelector('strong').textContent}`);
    choose(items, texts, list, i => { box.dataset.step = i + 1; })[1](items.length - 1);
  });
  const folds = box => [...box.children].filter(each => each.tagName === 'DETAILS');
  const unfold = box => {
    const parts = folds(box), heads = parts.map(part => part.querySelector('summary'));
    heads.forEach(head => { head.hidden = true; });
    parts.forEach(part => { part.open = true; });
    const [bar, press] = choose(parts, heads.map(head => head.textContent), parts[0]);
    press(0);
    return [bar, parts];
  };
  root.querySelectorAll('.ways').forEach(unfold);
  root.querySelectorAll('.tabs').forEach(box => {
    const [bar, parts] = unfold(box);
    const open = () => parts.find(part => !part.hidden).querySelector('pre').textContent;
    button(bar, 'Copy', () => navigator.clipboard?.writeText(open())).className = 'copy';
  });
});
"""

#: The most bytes of a fragment.  Pictures of larger ones show nothing on hovering, then their parts are folded.
_MOST = 30_000
#: Pictures shrink with the page, but not so far that their texts cannot be read: then the fragment scrolls.
_LEAST_WIDTH = 0.75
_PICTURE = re.compile(r'class="xarr-b" width="([0-9.]+)"')
_HINT = "<p><small>Hover a cell to see what it reads, or what reads it.</small></p>\n"
#: Bytes of what stands around the body of a fragment.
_SPARE = 150
_HOVERED = re.compile(r'<title>[^<]*</title>| data-(?:reads|cell)="[^"]*"')


def render_html(facts: BroadcastFacts) -> str:
    """The fragment: no external resources; without scripts all but the hovering works."""
    return fold_fragment(_BroadcastView(facts).body, "text(), svg() and to_dict() have it.")


class _BroadcastView:
    """All that the HTML of a broadcast shows, computed once, to be folded as often as needed."""

    def __init__(self, facts: BroadcastFacts) -> None:
        self._facts, self._problems = facts, problem_lines(facts)
        self._first = _AlignmentView(facts)
        self._fixes = suggestions(facts) if facts.alignment is None else ((), "")
        self._warnings = warnings(facts) if facts.alignment is not None else ()

    def body(self, fold: PageFold) -> str:
        head = f"<p><code>{escape(fold.text(headline(self._facts)))}</code></p>"
        problems = problem_blocks(self._problems, fold)
        if self._facts.alignment is None:
            parts = [head, self._first.picture(fold), self._first.table(fold), problems, self._repairs(fold)]
            return "\n".join(filter(None, parts))
        warned = _warnings(self._warnings, fold)
        return "\n".join(filter(None, [head, problems, self._ways(fold, head + problems + warned), warned]))

    def _repairs(self, fold: PageFold) -> str:
        fixes, more = self._fixes
        if not fixes:
            return f"<p>{escape(no_suggestion(self._facts))}</p>"
        return f"<p>What would work:</p>{listing(fixes, fold)}" + (f"<p>{more}</p>" if more else "")

    def _ways(self, fold: PageFold, around: str) -> str:
        """Picture, table and code; of the other alignments too, as far as there is space, to be switched to."""
        facts = self._facts
        alignment, first = facts.alignment, self._first.body(fold)
        assert alignment is not None, "only aligned operands have alignments"
        has_others = not facts.is_explicit and facts.problem is None and fold.measure is MEASURES[0]
        ways, size = [], count_bytes(around + first + _SCRIPT + _STYLE)
        for other in ambiguous_alternatives(alignment) if has_others else ():
            placed = tuple(replace(operand, values=None) for operand in facts.operands)
            way = replace(facts, operands=placed, outcome=other, is_explicit=True, result_values=None)
            view = _AlignmentView(way, has_style=False).body(fold)
            title = f"{new_axis_spelling(way)} \N{RIGHTWARDS ARROW} {other.result}"
            ways.append(f"<details><summary>{escape(title)}</summary>{view}</details>")
            size += count_bytes(ways[-1])
            if size > _MOST - 2 * _SPARE:
                ways.pop()
                break
        if not ways:
            return first
        title = f"{facts.operator.apply(facts.terms)} \N{RIGHTWARDS ARROW} {alignment.result}"
        first = f'<details open=""><summary>{escape(title)}</summary>{first}</details>'
        return f'<div class="ways">{first}{"".join(ways)}</div>'


class _AlignmentView:
    """One alignment: its picture, with its style if that stands nowhere before, step by step; its table and code."""

    def __init__(self, facts: BroadcastFacts, has_style: bool = True) -> None:
        self._picture = render_svg(facts, words=False, has_style=has_style)
        self._steps, self._rows = picture_steps(facts), _rows(facts)
        self._codes, self._cost = _codes(facts), f"{reuse(facts)}; {memory(facts)}" if facts.alignment else ""

    def body(self, fold: PageFold) -> str:
        shown = f"{self.picture(fold)}{self.table(fold)}{sections(self._codes, fold)}"
        return f"{shown}<p>{escape(fold.text(self._cost))}</p>"

    def picture(self, fold: PageFold) -> str:
        return _keep_legible(render_steps(fold.picture(self._picture), fold.steps(self._steps)))

    def table(self, fold: PageFold) -> str:
        return render_table(self._rows, fold)


def picture_steps(facts: BroadcastFacts) -> tuple[PictureStep, ...]:
    """The steps in which the picture comes to be, with the shapes after each; none of what does not align."""
    if facts.alignment is None:
        return ()
    return tuple(PictureStep(one.name, one.text, _shapes(facts, one)) for one in steps(facts))


def fold_fragment(body: Callable[[PageFold], str], elsewhere: str) -> str:
    """The fragment with as much of `body` as there is space for; `elsewhere` says where all of it stands."""
    fragment = ""
    for measure in MEASURES:
        fold = PageFold(measure)
        shown = body(fold)
        words = fold.words(elsewhere)
        fragment = wrap_fragment(f"{shown}\n<p>{escape(words)}</p>" if words else shown, is_live=True)
        if count_bytes(fragment) <= _MOST:
            break
    return fragment


def wrap_fragment(body: str, is_live: bool = False) -> str:
    """The fragment that holds `body`, with the style of explanations; a live one has cells to hover, and tabs."""
    body = _keep_legible(body)
    if count_bytes(body + _SCRIPT + _STYLE) > _MOST - _SPARE:
        body = _HOVERED.sub("", body)
    if is_live and any(each in body for each in ("data-reads", 'class="tabs"', 'class="steps"')):
        body += f"\n{_HINT if 'data-reads' in body else ''}<script>{_SCRIPT}</script>"
    return f'<div class="xarr-e"><style>{_STYLE}</style>\n{body}</div>'


def _keep_legible(body: str) -> str:
    """The markup with a least width for each of its pictures that has none."""

    def widen(match: re.Match[str]) -> str:
        least = round(float(match[1]) * _LEAST_WIDTH)
        return f'class="xarr-b" style="min-width:{least}px" width="{match[1]}"'

    return _PICTURE.sub(widen, body)


def join_fragments(fragments: Sequence[str]) -> str:
    """Fragments below each other as one, which has their styles and their script once.

    The first of equal styles stays, and the last script, which finds all fragments before it.
    """
    joined = "\n".join(fragments)
    for text in (f"<style>{_STYLE}</style>", f"<style>{PICTURE_STYLE}</style>"):
        before, first, after = joined.partition(text)
        joined = before + first + after.replace(text, "")
    script = f"<script>{_SCRIPT}</script>"
    before, first, after = joined.rpartition(script)
    return before.replace(script, "") + first + after


def problem_blocks(lines: Sequence[str], fold: PageFold) -> str:
    """Why an op does not run, a paragraph for each sentence."""
    return "\n".join(f'<p class="w">{escape(fold.text(line))}</p>' for line in fold.some(lines, "problem"))


def sections(codes: Sequence[tuple[str, str]], fold: PageFold) -> str:
    """Titles and code, which scripts make tabs of; without scripts they stand below each other."""
    if not codes:
        return ""
    shown = "".join(_section(title, fold.code(title, code)) for title, code in codes)
    return f'<div class="tabs">{shown}</div>'


def _section(title: str, code: str) -> str:
    return f'<details open=""><summary>{escape(title)}</summary><pre>{escape(code)}</pre></details>'


def _rows(facts: BroadcastFacts) -> list[list[tuple[str, str]]]:
    """The table of axes, texts with their marks: the head, a row for each operand, the result, and what happens."""
    if not facts.has_table or not facts.rank:
        return []
    axes = range(facts.rank)
    rows: list[list[tuple[str, str]]] = [[("axis", ""), *((str(axis), "") for axis in axes)]]
    for name, row in zip(facts.names, facts.rows, strict=True):
        rows.append([(name, ""), *((cell_text(cell), cell.kind) for cell in row)])
    if facts.result is not None:
        rows.append([(facts.result.name, ""), *((str(size), "") for size in facts.result.shape)])
    return [*rows, [("how", ""), *((how(facts, axis), "") for axis in axes)]]


def render_table(rows: Sequence[Sequence[tuple[str, str]]], fold: PageFold) -> str:
    """A table of texts with their marks; its first row is the head, and each row begins with its label."""
    lines = []
    for number, (label, *cells) in enumerate(fold.table(rows, ("\N{HORIZONTAL ELLIPSIS}", ""))):
        own = [(escape(fold.text(text)), mark) for text, mark in cells]
        shown = [f'<td class="{mark}">{text}</td>' if mark else f"<td>{text}</td>" for text, mark in own]
        if not number:
            shown = [f"<th>{text}</th>" for text, _ in own]
        lines.append(f"<tr><th>{escape(fold.text(label[0]))}</th>{''.join(shown)}</tr>")
    return f"<table>{''.join(lines)}</table>" if lines else ""


def _codes(facts: BroadcastFacts) -> list[tuple[str, str]]:
    if facts.alignment is None:
        return []
    single = one_op(facts)
    explicit = "\n".join(explicit_ops(facts))
    if single is not None:
        explicit += f"\n\n# in one op\n{single}"
    implicit = [] if facts.is_explicit else [facts.operator.apply(facts.terms)]
    numpy = "\n".join(dict.fromkeys((*implicit, new_axis_spelling(facts))))
    codes = [("NumPy", numpy), ("XLA: every broadcast spelled out", explicit), ("Loop", loop_nest(facts))]
    text = stablehlo(facts)
    return [*codes, ("StableHLO", text)] if text is not None else codes


def _shapes(facts: BroadcastFacts, step: AlignmentStep) -> str:
    """The shapes after a step, with a dot for an axis that an operand lacks."""
    names = ("result",) if step.name == "compute" else facts.names
    shapes = (", ".join("\N{MIDDLE DOT}" if size is None else str(size) for size in s) for s in step.shapes)
    return "   ".join(f"{name} ({shape})" for name, shape in zip(names, shapes, strict=True))


def _warnings(listed: Sequence[Warn], fold: PageFold) -> str:
    lines = []
    for warning in listed:
        text = escape(fold.text("; ".join(warning.lines)))
        lines.append(f'<p class="w"><strong>{warning.kind}</strong> {text}</p>')
        lines.append(listing(warning.suggestions, fold))
        lines.append(f"<p>{warning.more}</p>" if warning.more else "")
    return "".join(lines)


def listing(fixes: Sequence[Suggestion], fold: PageFold, head: str = "NumPy") -> str:
    """Suggestions as a table, under the name of their language."""
    if not fixes:
        return ""
    rows, has_explicit = [], any(one.explicit for one in fixes)
    for one in fold.some(fixes, "suggestion"):
        texts = [one.expression, *([one.explicit or ""] if has_explicit else []), one.result]
        *spelled, result = [escape(fold.text(text)) for text in texts]
        cells = "".join(f"<td><code>{text}</code></td>" for text in spelled)
        rows.append(f"<tr>{cells}<td>{result}</td></tr>")
    titles = f"<tr><th>{head}</th>{'<th>explicit</th>' if has_explicit else ''}<th>result</th></tr>"
    return f"<table>{titles}{''.join(rows)}</table>"
