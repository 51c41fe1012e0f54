"""How well texts are told from what lies behind them, as a browser computes it: WCAG 2's contrast, level AA.

`LOW_CONTRAST` is a JavaScript function that lists the texts that fail: those below 4.5, or 3 where they are large.  It
looks at HTML, whose backgrounds are those of the elements around, and at cells of pictures, whose backgrounds are the
rectangles before them in their group, on the paper of the picture.
"""

from __future__ import annotations

from typing import Final

LOW_CONTRAST: Final = r"""
() => {
  const parse = (text) => {
    const numbers = (text.match(/[\d.]+/g) ?? []).map(Number);
    return numbers.length < 3 ? [0, 0, 0, 0] : [...numbers.slice(0, 3), numbers[3] ?? 1];
  };
  const over = (top, below) => {
    const alpha = top[3];
    return [0, 1, 2].map((i) => top[i] * alpha + below[i] * (1 - alpha)).concat(1);
  };
  const channel = (value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const contrast = (one, two) => {
    const [dark, bright] = [luminance(one), luminance(two)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };
  const canvas = matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18, 1] : [255, 255, 255, 1];
  const behind = (element) => {
    const stack = [];
    for (let at = element; at; at = at.parentElement) stack.push(parse(getComputedStyle(at).backgroundColor));
    return stack.reverse().reduce((below, top) => over(top, below), canvas);
  };
  const painted = (shape) => {
    const style = getComputedStyle(shape);
    const fill = parse(style.fill);
    return style.fill === 'none' ? [0, 0, 0, 0] : [...fill.slice(0, 3), fill[3] * Number(style.fillOpacity)];
  };
  const isShown = (element) => {
    if (!element.getClientRects().length) return false;
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.visibility === 'hidden' || Number(style.opacity) === 0) return false;
    }
    return true;
  };
  const low = [];
  const judge = (text, color, background, size, weight, where) => {
    const large = size >= 24 || (size >= 18.66 && weight >= 700);
    const ratio = contrast(over(color, background), background);
    if (ratio < (large ? 3 : 4.5)) low.push(`${where}: ${text.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.data.trim() || !isShown(element) || ['SCRIPT', 'STYLE', 'style'].includes(element.tagName)) continue;
    count += 1;
    const style = getComputedStyle(element), size = parseFloat(style.fontSize), weight = Number(style.fontWeight);
    if (element.namespaceURI.endsWith('svg')) {
      const svg = element.ownerSVGElement, group = element.closest('g');
      const rects = [...svg.querySelectorAll(':scope > rect'), ...(group?.querySelectorAll('rect') ?? [])];
      const background = rects.map(painted).reduce((below, top) => over(top, below), behind(svg));
      judge(node.data, painted(element), background, size, weight, `svg .${group?.getAttribute('class') ?? ''}`);
    } else {
      judge(node.data, parse(style.color), behind(element), size, weight, `${element.tagName}.${element.className}`);
    }
  }
  for (const input of document.querySelectorAll('input')) {
    if (!isShown(input)) continue;
    const style = getComputedStyle(input);
    count += 1;
    judge(input.value || 'x', parse(style.color), behind(input), parseFloat(style.fontSize), 400, `INPUT#${input.id}`);
  }
  return count ? low : ['no text at all'];
}
"""
