// What both views of the page make their elements with.

export const $ = (id) => document.getElementById(id);

export const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

export const button = (text, act, properties = {}) =>
  make("button", { type: "button", onclick: act, ...properties }, text);

export const fill = (element, children) => {
  element.replaceChildren(...children);
  element.hidden = children.length === 0;
};

// Arrow keys go from one button of a group to the next, so that a group is one stop of the tab key.
export const rove = (group, buttons, current) => {
  buttons.forEach((each, i) => (each.tabIndex = i === Math.max(current, 0) ? 0 : -1));
  group.onkeydown = (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = buttons.indexOf(document.activeElement);
    if (!by || at < 0) return;
    event.preventDefault();
    const next = buttons[(at + by + buttons.length) % buttons.length];
    next.focus();
    if (group.dataset.follows) next.click();
  };
};

export const copy = async (text, from) => {
  const { textContent } = from;
  try {
    await navigator.clipboard.writeText(text);
    from.textContent = "Copied";
  } catch {
    from.textContent = "Not allowed here";
  }
  setTimeout(() => (from.textContent = textContent), 1500);
};

// A picture as xarr draws it, which escapes all names.
export const draw = (element, svg) => {
  element.innerHTML = svg;
  // Their texts stand beside the picture, so no tooltip repeats them.
  element.querySelectorAll("title").forEach((title) => {
    title.parentElement.dataset.says = title.textContent;
    title.remove();
  });
};
