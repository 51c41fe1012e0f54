// The page: its state is one expression and how it is looked at, and stands in the address.

import { $, button, copy, draw, fill, make, rove } from "./elements.js";
import { ask as askPython, hasPython, loadNumPy, startPython, whenLost, whenNumPy } from "./engine.js";
import { showAddressed, startPuzzles } from "./puzzles.js";

const START = { expression: "(5,1) - (5,)", dims: "", order: "", op: null };
const MOST_STEPS = 7; // of all kinds of explanations
const TITLE = document.title;

let state = { ...START };
let view = { step: MOST_STEPS, tab: "NumPy" }; // the last step is there, whatever its number
let reply = null;
let known = {}; // answers that were computed when the page was assembled, by state
let examples = { simple: [], more: [] };
let asked = 0; // so that an answer that comes late is not shown with another question

// --- the address ----------------------------------------------------------------------------------

const writeAddress = () => {
  const parts = { e: state.expression, d: state.dims, o: state.order, n: state.op ?? "", s: view.step, t: view.tab };
  const query = new URLSearchParams(Object.entries(parts).filter(([, value]) => value !== ""));
  history.replaceState(null, "", `#${query}`);
  $("to-shapes").href = `#${query}`;
};

const readAddress = () => {
  const query = new URLSearchParams(location.hash.slice(1));
  const op = query.get("n");
  state = {
    expression: query.get("e") ?? START.expression,
    dims: query.get("d") ?? "",
    order: query.get("o") ?? "",
    op: op === null || !/^\d+$/.test(op) ? null : Number(op),
  };
  const step = Number(query.get("s") ?? MOST_STEPS);
  view = { step: step >= 1 && step <= MOST_STEPS ? Math.floor(step) : MOST_STEPS, tab: query.get("t") ?? "NumPy" };
};

// --- answers --------------------------------------------------------------------------------------

const key = (of) => JSON.stringify({ expression: of.expression, dims: of.dims, order: of.order, op: of.op });

const go = (next) => {
  if ($("shapes").hidden) return; // what was typed just before the other view came
  state = { ...next };
  if ($("expression").value !== state.expression) $("expression").value = state.expression;
  ask();
};

const ask = async () => {
  writeAddress();
  markExample();
  asked += 1;
  const mine = asked;
  if (known[key(state)]) return show(known[key(state)]);
  if (!hasPython()) return;
  try {
    const answer = await askPython("answer", key(state));
    if (mine === asked) show(answer);
  } catch (error) {
    if (mine === asked) show({ error: error.message });
  }
};

const show = (answer) => {
  const problem = $("problem");
  problem.hidden = !answer.error;
  $("expression").setAttribute("aria-invalid", String(Boolean(answer.error)));
  if (answer.error) {
    problem.textContent = answer.error;
    $("answer").classList.add("stale");
    return;
  }
  reply = answer;
  $("answer").hidden = false;
  $("answer").classList.remove("stale");
  showSummary();
  showChoices();
  showPicture();
  showAxes();
  showCodes();
};

const showSummary = () => {
  const parts = [make("code", { className: "op" }, reply.expression)];
  reply.operands.forEach(({ name, label }, i) => {
    parts.push(make("span", { className: `operand o${i % 5}` }, make("b", {}, name), ` ${label}`));
  });
  const result = reply.result ?? (reply.fits ? "" : "does not fit");
  if (result) parts.push(make("span", { className: reply.fits ? "result" : "result clash" }, `→ ${result}`));
  fill($("headline"), parts);
  const notes = reply.notes.map(({ kind, lines, suggestions }) =>
    make(
      "p",
      { className: "note" },
      make("strong", {}, kind === "OUTER" ? "Larger than both" : "Ambiguous"),
      ` ${lines.join("; ")} `,
      ...suggestions.map((each) => make("code", {}, each)),
    ),
  );
  fill($("notes"), [...notes, ...reply.problems.map((line) => make("p", { className: "note clash" }, line))]);
};

const choice = (label, result, pressed, to) => {
  const content = make("button", { type: "button", disabled: to === null, onclick: () => go(to) });
  content.append(make("code", {}, label), ...(result ? [make("span", {}, `→ ${result}`)] : []));
  if (pressed !== null) content.setAttribute("aria-pressed", String(pressed));
  return content;
};

const titled = (element, title, buttons) => {
  fill(element, buttons.length ? [make("span", { className: "title" }, title), ...buttons] : []);
};

const showChoices = () => {
  titled($("ops"), "One after another", (reply.ops ?? []).map((o) => choice(o.label, o.fits ? "" : "fails", o.shown, o.state)));
  const fitting = reply.alignments.map((each) =>
    choice(each.label, each.is_numpys ? `${each.result}, NumPy's rule` : each.result, each.shown, each.state),
  );
  titled($("alignments"), reply.fits ? "Alignments that fit" : "What would fit", fitting);
  const fixes = reply.fixes.map((each) => choice(each.label, each.result, null, each.state));
  titled($("fixes"), "What would work", fixes);
  if (reply.more) {
    $("fixes").hidden = false;
    $("fixes").append(make("span", { className: "quiet" }, reply.more));
  }
};

// --- picture --------------------------------------------------------------------------------------

const showPicture = () => {
  const picture = $("picture");
  draw(picture, reply.svg);
  delete picture.dataset.step;
  $("reads").textContent = picture.querySelector("[data-reads]")
    ? "Point at a cell, or use the arrow keys in the picture: what it reads lights up."
    : "";
  const { steps } = reply;
  $("step").hidden = steps.length === 0;
  if (steps.length < 2) {
    fill($("stepper"), []);
    if (steps.length) showStep(1);
    return;
  }
  const numbered = steps.map(({ name }, i) =>
    button("", () => goToStep(i + 1), { className: "numbered" }),
  );
  numbered.forEach((each, i) => each.append(make("b", {}, String(i + 1)), steps[i].name));
  const back = button("←", () => goToStep(shownStep() - 1), { id: "back", ariaLabel: "Step back" });
  const on = button("→", () => goToStep(shownStep() + 1), { id: "on", ariaLabel: "Step on" });
  fill($("stepper"), [back, ...numbered, on]);
  $("stepper").dataset.follows = "1";
  showStep(shownStep());
};

// The step that is shown: the last one where there are fewer than the address says.
const shownStep = () => Math.min(view.step, reply.steps.length);

const goToStep = (step) => {
  view.step = step < reply.steps.length ? Math.max(step, 1) : MOST_STEPS;
  writeAddress();
  showStep(shownStep());
};

const showStep = (step) => {
  const { steps } = reply;
  const { name, text, shapes } = steps[step - 1];
  if (steps.length > 1) {
    $("picture").dataset.step = step;
    const numbered = [...$("stepper").querySelectorAll(".numbered")];
    numbered.forEach((each, i) => {
      if (i === step - 1) each.setAttribute("aria-current", "step");
      else each.removeAttribute("aria-current");
    });
    rove($("stepper"), numbered, step - 1);
    $("back").disabled = step === 1;
    $("on").disabled = step === steps.length;
  }
  fill($("step"), [
    make("b", {}, `${name}: `), `${text}. `, ...shapes.map((each) => make("code", {}, each)),
  ]);
};

const light = (cell) => {
  const picture = $("picture");
  picture.querySelectorAll(".lit").forEach((each) => each.classList.remove("lit"));
  if (!cell) return;
  cell.classList.add("lit");
  $("reads").textContent = cell.dataset.says ?? "";
  if (cell.dataset.reads) {
    for (const each of cell.dataset.reads.split(" ")) {
      picture.querySelector(`[data-cell="${each}"]`)?.classList.add("lit");
    }
  } else if (cell.dataset.cell) {
    const readers = [...picture.querySelectorAll("[data-reads]")].filter((each) =>
      each.dataset.reads.split(" ").includes(cell.dataset.cell),
    );
    readers.forEach((each) => each.classList.add("lit"));
    $("reads").textContent = `${cell.dataset.says} is read by ${readers.length} of the cells drawn`;
  }
};

const place = (cell) => {
  const box = cell.querySelector("rect");
  return { cell, x: Number(box.getAttribute("x")), y: Number(box.getAttribute("y")) };
};

// The cell of the result that lies next to the lit one in a direction.
const moveLight = (event) => {
  const along = { ArrowRight: "x", ArrowLeft: "x", ArrowDown: "y", ArrowUp: "y" }[event.key];
  if (event.key === "Escape") light(null);
  if (!along) return;
  const cells = [...$("picture").querySelectorAll("[data-reads]")].map(place);
  if (!cells.length) return;
  event.preventDefault();
  if (reply.steps.length > 1 && shownStep() < reply.steps.length) goToStep(reply.steps.length);
  const now = cells.find(({ cell }) => cell.classList.contains("lit"));
  if (!now) return light(cells[0].cell);
  const sign = event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1;
  const across = along === "x" ? "y" : "x";
  const ahead = cells
    .filter((each) => each[across] === now[across] && (each[along] - now[along]) * sign > 0)
    .sort((a, b) => (a[along] - b[along]) * sign);
  light((ahead[0] ?? now).cell);
};

// --- axes and code --------------------------------------------------------------------------------

const showAxes = () => {
  const rows = reply.table.map((row, i) =>
    make(
      "tr",
      {},
      ...row.map(({ text, kind }, j) =>
        make(i === 0 || j === 0 ? "th" : "td", { className: kind, scope: i === 0 ? "col" : j === 0 ? "row" : "" }, text),
      ),
    ),
  );
  fill($("table"), rows);
  const { dims } = reply;
  $("dims").hidden = !dims;
  if (dims) {
    $("dims").querySelector("label").textContent = `broadcast_dimensions of ${dims.name}`;
    if (document.activeElement !== $("dimensions")) $("dimensions").value = dims.value;
    $("dims-help").textContent = `To which axes of the result, 0 to ${dims.rank - 1}, those of ${dims.name} go.`;
  }
  $("cost").textContent = reply.cost.join("; ");
  $("axes").hidden = rows.length === 0 && !dims;
};

const showCodes = () => {
  const { codes } = reply;
  const shown = Math.max(codes.findIndex(({ name }) => name === view.tab), 0);
  const tabs = codes.map(({ name }, i) => {
    const tab = button(name, () => {
      view.tab = name;
      writeAddress();
      showCodes();
      $("tabs").children[i].focus();
    });
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-selected", String(i === shown));
    tab.setAttribute("aria-controls", "panel");
    return tab;
  });
  fill($("tabs"), tabs);
  $("tabs").dataset.follows = "1";
  rove($("tabs"), tabs, shown);
  $("code").hidden = codes.length === 0;
  $("panel").textContent = codes[shown]?.code ?? "";
  $("panel").setAttribute("aria-label", codes[shown]?.name ?? "");
};

// --- start ----------------------------------------------------------------------------------------

const markExample = () => {
  $("examples")
    .querySelectorAll("button")
    .forEach((each) => each.setAttribute("aria-pressed", String(each.dataset.expression === state.expression)));
};

const showExamples = (listed) => {
  fill(
    $("examples"),
    listed.map(([expression, title]) => {
      const each = button(expression, () => go({ ...START, expression }), { title });
      each.dataset.expression = expression;
      return each;
    }),
  );
};

const withoutPython = (why) => {
  $("status").textContent = `${why} The examples work all the same; for other shapes: python -m xarr explain "…"`;
  $("expression").disabled = true;
  $("dimensions").disabled = true;
  $("more").hidden = true;
};

const withNumPy = () => {
  known = {};
  showExamples([...examples.simple, ...examples.more]);
  if (!$("shapes").hidden) ask();
};

// The address says which of the two views is shown.
const showView = () => {
  const isPuzzle = showAddressed();
  $("shapes").hidden = isPuzzle;
  $("puzzles").hidden = !isPuzzle;
  for (const [id, shown] of [["to-shapes", !isPuzzle], ["to-puzzles", isPuzzle]]) {
    if (shown) $(id).setAttribute("aria-current", "page");
    else $(id).removeAttribute("aria-current");
  }
  if (isPuzzle) return;
  document.title = TITLE;
  readAddress();
  go(state);
};

const wire = () => {
  let pending = 0;
  $("expression").oninput = () => {
    clearTimeout(pending);
    pending = setTimeout(() => go({ ...START, expression: $("expression").value }), 120);
  };
  $("ask").onsubmit = (event) => event.preventDefault();
  $("dims").onsubmit = (event) => event.preventDefault();
  $("dimensions").oninput = () => {
    clearTimeout(pending);
    pending = setTimeout(() => go({ ...state, dims: $("dimensions").value.trim(), op: null }), 120);
  };
  const picture = $("picture");
  picture.onmouseover = picture.onclick = (event) => light(event.target.closest("[data-reads],[data-cell]"));
  picture.onmouseleave = () => light(null);
  picture.onkeydown = moveLight;
  $("copy").onclick = () => copy($("panel").textContent, $("copy"));
  $("link").onclick = () => copy(location.href, $("link"));
  $("numpy").onclick = () => loadNumPy().catch(() => {}); // the line beside it says why
  window.onhashchange = showView;
};

const begin = async () => {
  readAddress();
  $("expression").value = state.expression;
  wire();
  whenLost(withoutPython);
  whenNumPy(withNumPy);
  startPuzzles().catch(() => ($("puzzle-title").textContent = "The puzzles could not be loaded."));
  startPython();
  try {
    const response = await fetch("examples.json");
    const { answers, ...listed } = await response.json();
    examples = { simple: listed.examples, more: listed.more };
    known = answers;
    showExamples(examples.simple);
  } catch {
    $("status").textContent = "The examples could not be loaded.";
  }
  showView();
};

begin();
