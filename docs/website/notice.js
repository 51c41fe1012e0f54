// In a notebook of JupyterLite: says which part of Python could not be loaded, and what to do.  Without it, cells show
// [*] for ever.  The tag's data: `sources`, the addresses that the kernel loads from; `wait`, the seconds that each may
// take to answer; `patience`, those in which a first cell must have run; `shapes`, a page that needs no network.

(() => {
  const { sources, wait, patience, shapes } = document.currentScript.dataset;

  const make = (tag, text, properties = {}) =>
    Object.assign(document.createElement(tag), { textContent: text }, properties);

  // Why there is no answer from an address; "" where there is one.  What the browser has kept counts.
  const probe = async (address) => {
    const giveUp = new AbortController();
    const timer = setTimeout(() => giveUp.abort(), wait * 1000);
    try {
      await fetch(address, { mode: "no-cors", cache: "force-cache", signal: giveUp.signal });
      return "";
    } catch {
      const why = giveUp.signal.aborted ? `no answer in ${wait} seconds` : "no connection";
      return `${new URL(address).host} (${why})`;
    } finally {
      clearTimeout(timer);
    }
  };

  const style = () => {
    const colours = "color:#6b0a14;background:#fdecea;border:2px solid #b3261e";
    const box = "font:14px/1.45 system-ui,sans-serif;padding:10px 14px;box-sizing:border-box";
    document.head.append(
      make("style", `.xarr-missing{${colours};${box};margin:6px 0}.xarr-missing a{color:inherit;text-decoration:underline}` +
        ".xarr-missing button{font:inherit;margin-right:10px}.xarr-missing p{margin:0 0 6px}" +
        ".xarr-missing.banner{position:fixed;left:0;right:0;bottom:0;margin:0;max-height:50vh;overflow:auto;z-index:10000}"),
    );
  };

  const say = (first, why) => {
    const banner = make("div", "", { className: "xarr-missing banner" });
    banner.setAttribute("role", "alert");
    const ways = make("p", "What to do: see that there is a network, and ");
    const again = make("button", "try again", { type: "button", onclick: () => location.reload() });
    const download = ' Or download this notebook ("File", "Download") and run it by Jupyter on a computer that has xarr. ';
    ways.append(again, download, "Shapes alone are explained without a network: ");
    ways.append(make("a", "two shapes", { href: shapes }), ".");
    const close = make("button", "close", { type: "button", onclick: () => banner.remove() });
    banner.append(make("p", first), make("p", why), ways, close);
    document.body.append(banner);
  };

  const prompts = () => [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")];
  const waits = (prompt) => prompt.textContent.includes("[*]");

  // Below each cell that waits, why it does; again where the application draws its cells anew.
  const mark = (text) => {
    for (const prompt of prompts()) {
      const cell = prompt.closest(".jp-CodeCell");
      const own = cell.querySelector(".xarr-missing");
      if (waits(prompt) && !own) cell.append(make("div", text, { className: "xarr-missing" }));
      else if (!waits(prompt) && own) own.remove();
    }
  };

  const keepMarking = (text) => {
    mark(text);
    const observer = new MutationObserver(() => mark(text));
    observer.observe(document.body, { childList: true, characterData: true, subtree: true });
  };

  const start = async () => {
    style();
    const missing = (await Promise.all(sources.split(" ").map(probe))).filter(Boolean);
    if (missing.length) {
      document.documentElement.dataset.python = "missing";
      say("Python could not be loaded, so that no cell of this notebook runs: [*] would stay.", `Missing: ${missing.join(", ")}.`);
      keepMarking("Not run: Python could not be loaded. The line at the bottom of the page says what is missing.");
      return;
    }
    document.documentElement.dataset.python = "reached";
    setTimeout(() => {
      if (prompts().some(waits) && !prompts().some((prompt) => /\[\d+\]/.test(prompt.textContent))) {
        const first = `No cell has run yet, and the first one has waited for up to ${patience} seconds.`;
        say(first, "What Python is loaded from answers; it may be slow, or too large for this browser's memory.");
      }
    }, patience * 1000);
  };

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
