// The puzzles: one at a time, by the checker of `python -m xarr puzzle`.  What is solved is kept in this browser.

import { $, button, copy, draw, fill, make } from "./elements.js";
import { ask, hasNumPy, loadNumPy, whenLost } from "./engine.js";

const KEPT = "xarr.puzzles";

let puzzles = [];
let current = null;
let shownHints = 0;
let isLost = false; // where there is no Python
let checked = 0; // so that a verdict that comes late is not shown with another answer

// --- what is solved: the elements of the best answer by number, null of shapes ---------------------

const readKept = () => {
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
    return kept !== null && typeof kept === "object" && !Array.isArray(kept) ? kept : {};
  } catch {
    return {};
  }
};

const keep = (number, elements) => {
  const kept = readKept();
  const before = kept[number];
  kept[number] = typeof before === "number" && elements !== null ? Math.min(before, elements) : elements;
  try {
    localStorage.setItem(KEPT, JSON.stringify(kept));
    return true;
  } catch {
    return false;
  }
};

// --- the list -------------------------------------------------------------------------------------

const link = (one, kept) => {
  const solved = one.number in kept;
  const score = typeof kept[one.number] === "number" ? ` ${kept[one.number]}` : "";
  const each = make(
    "a",
    { href: `#p=${one.number}` },
    make("span", { className: "mark", ariaHidden: "true" }, solved ? "✓" : "·"),
    make("span", {}, `${one.number} ${one.title}`),
    ...(solved ? [make("span", { className: "said" }, ", solved")] : []),
    ...(score ? [make("span", { className: "score", title: "elements read and written" }, score)] : []),
  );
  if (one === current) each.setAttribute("aria-current", "true");
  if (solved) each.className = "solved";
  return make("li", {}, each);
};

const showList = () => {
  const kept = readKept();
  const parts = [...group(puzzles)].map(([chapter, ones]) =>
    make(
      "section",
      {},
      make("h3", {}, `${chapter}  `, make("span", { className: "score" }, `${ones.filter((one) => one.number in kept).length}/${ones.length}`)),
      make("ol", {}, ...ones.map((one) => link(one, kept))),
    ),
  );
  fill($("chapters"), parts);
  const count = puzzles.filter((one) => one.number in kept).length;
  $("solved").textContent = `${count} of ${puzzles.length} solved`;
  $("forget").hidden = count === 0;
};

const group = (ones) => {
  const chapters = new Map();
  ones.forEach((one) => chapters.set(one.chapter, [...(chapters.get(one.chapter) ?? []), one]));
  return chapters;
};

// --- one puzzle -----------------------------------------------------------------------------------

const showPuzzle = () => {
  const one = current;
  $("puzzle-title").textContent = `${one.number}. ${one.title}`;
  fill($("task"), one.task.split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part)));
  fill($("arrays"), one.arrays.map(([name, type], i) => make("code", { className: `o${i % 5}` }, `${name}: ${type}`)));
  $("loops").textContent = one.loops;
  $("loops").hidden = !one.loops;
  fill($("rules"), one.rules.map(([rule, said]) => make("li", {}, make("b", {}, rule), `: ${said}`)));
  $("names").textContent = one.needs_numpy
    ? `One expression of ${one.names.join(", ")}, np and lax.`
    : `A tuple of ${one.names.join(", ")}, such as (${one.names[0]}, 1).`;
  $("needs").hidden = !one.needs_numpy || isLost;
  shownHints = 0;
  showHints();
  checked += 1;
  fill($("failure"), []);
  if (isLost) say("bad", "Answers cannot be checked here. On a computer: ", command(one));
  else fill($("verdict"), []);
  document.title = `Puzzle ${one.number}: ${one.title}`;
};

const showHints = () => {
  const { hints } = current;
  fill($("hints"), hints.slice(0, shownHints).map((text) => make("pre", { className: "scroll", tabIndex: 0 }, text)));
  $("hint").hidden = shownHints === hints.length;
  $("hint").textContent = shownHints < hints.length - 1 ? `Hint ${shownHints + 1} of ${hints.length}` : "Show a solution";
};

const writeAddress = () => {
  const query = new URLSearchParams({ p: current.number });
  if ($("answer-text").value) query.set("a", $("answer-text").value);
  history.replaceState(null, "", `#${query}`);
  $("to-puzzles").href = `#${query}`;
};

// --- the verdict ----------------------------------------------------------------------------------

const command = (one) => make("code", {}, `python -m xarr puzzle ${one.number} "…"`);

const say = (className, ...parts) => fill($("verdict"), [make("p", { className }, ...parts)]);

const check = async () => {
  const one = current;
  const answer = $("answer-text").value.trim();
  if (!answer) return;
  writeAddress();
  checked += 1;
  const mine = checked;
  fill($("failure"), []);
  try {
    if (one.needs_numpy && !hasNumPy()) {
      say("quiet", "This answer is computed: NumPy loads first.");
      await loadNumPy();
    } else say("quiet", "Checking …");
    const verdict = await ask("check", JSON.stringify({ number: one.number, answer }));
    if (mine === checked) showVerdict(one, verdict);
  } catch (error) {
    if (mine !== checked) return;
    const others = one.needs_numpy ? " Chapter 1 and puzzles 31 to 33 need no NumPy." : "";
    say("bad", `Not checked: ${error.message}${others} On a computer: `, command(one));
  }
};

const showVerdict = (one, verdict) => {
  if (verdict.error) return say("bad", verdict.error);
  if (!verdict.passed) {
    say("bad", verdict.message);
    fill($("failure"), verdict.steps.map(showStep));
    return;
  }
  const kept = keep(one.number, verdict.elements);
  const next = puzzles[one.number]; // numbers begin at 1
  const lost = kept ? [] : [" This browser keeps nothing, so the list forgets it."];
  const on = next ? [" ", make("a", { href: `#p=${next.number}` }, `Next: ${next.title}`)] : [];
  say("good", make("b", {}, "✓ "), verdict.message, ...lost, ...on);
  showList();
};

const showStep = ({ svg, text }) => {
  const picture = make("div", { className: "picture", tabIndex: 0 });
  picture.setAttribute("role", "region");
  picture.setAttribute("aria-label", `Picture of ${text.split("\n", 1)[0]}`);
  draw(picture, svg);
  const words = make("details", {}, make("summary", {}, "The same as text"), make("pre", { className: "scroll", tabIndex: 0 }, text));
  return make("section", { className: "card" }, picture, words);
};

// --- start ----------------------------------------------------------------------------------------

// Show the puzzle that the address names, if it names one.
export const showAddressed = () => {
  const query = new URLSearchParams(location.hash.slice(1));
  if (!query.has("p") || !puzzles.length) return query.has("p");
  const number = Number(query.get("p"));
  const next = puzzles.find((one) => one.number === number) ?? puzzles[0];
  const answer = query.get("a") ?? "";
  if (next !== current || answer !== $("answer-text").value) {
    current = next;
    $("answer-text").value = answer;
    showPuzzle();
  }
  showList();
  return true;
};

export const startPuzzles = async () => {
  $("try").onsubmit = (event) => {
    event.preventDefault();
    check();
  };
  $("hint").onclick = () => {
    shownHints += 1;
    showHints();
    $("hints").lastElementChild.focus();
  };
  $("puzzle-link").onclick = () => {
    writeAddress();
    copy(location.href, $("puzzle-link"));
  };
  $("forget").onclick = () => {
    localStorage.removeItem(KEPT);
    showList();
    $("solved").focus();
  };
  $("load-for-puzzle").onclick = () => loadNumPy().catch(() => {}); // the line beside it says why
  whenLost(() => {
    isLost = true;
    $("check").disabled = true;
    if (current) showPuzzle();
  });
  const response = await fetch("puzzles.json");
  puzzles = await response.json();
  showAddressed();
};
