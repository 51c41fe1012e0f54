// The page's Python, in a thread of its own: it is asked for the answers to states, and says what it is loading.

import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = new URL(".", import.meta.url).href;
// Where the wheels of other packages lie: beside Pyodide if they were assembled with the page.
const packages = new URL("@PACKAGES@", here).href;

const bytes = async (name) => {
  const response = await fetch(here + name);
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
};

const start = async () => {
  postMessage({ loading: "Python" });
  const [python, shapes, page, puzzlePage] = await Promise.all([
    loadPyodide({ indexURL: `${here}pyodide/`, packageBaseUrl: packages }),
    bytes("shapes.zip"),
    bytes("page.py"),
    bytes("puzzle_page.py"),
  ]);
  postMessage({ loading: "xarr" });
  // Imported from the archive as it is: unpacking its files would take longer than all else of it.
  python.FS.writeFile("/shapes.zip", shapes);
  python.FS.writeFile("/page.py", page);
  python.FS.writeFile("/puzzle_page.py", puzzlePage);
  python.runPython("import sys; sys.path[:0] = ['/', '/shapes.zip']; import page, puzzle_page");
  postMessage({ ready: true });
  return python;
};

const started = start();
started.catch((error) => postMessage({ failed: String(error.message ?? error) }));

// Functions that the page calls, with their modules.
const modules = { answer: "page", check: "puzzle_page" };

const answer = async ({ id, name, text }) => {
  const python = await started;
  try {
    postMessage({ id, reply: python.pyimport(modules[name])[name](text) });
  } catch (error) {
    postMessage({ id, error: String(error.message ?? error) });
  }
};

const loadNumPy = async () => {
  const python = await started;
  for (const name of ["numpy", "ml-dtypes", "typing-extensions"]) {
    postMessage({ numpy: { loading: `Loading ${name} …` } });
    let failed = "";
    await python.loadPackage(name, { errorCallback: (text) => (failed = text), messageCallback: () => {} });
    if (failed) throw new Error(failed);
  }
  postMessage({ numpy: { loading: "Loading the rest of xarr …" } });
  // Anew and from files, since the library reads tables that lie beside its modules.
  python.unpackArchive(await bytes("xarr.zip"), "zip", { extractDir: "/whole" });
  python.runPython(`
import sys
for name in [each for each in sys.modules if each.partition(".")[0] in ("xarr", "page", "puzzle_page")]:
    del sys.modules[name]
sys.path[:2] = ["/", "/whole"]
import numpy, page, puzzle_page
`);
  postMessage({ numpy: { loaded: true } });
};

onmessage = ({ data }) => {
  if (data.numpy) {
    loadNumPy().catch((error) => postMessage({ numpy: { failed: String(error.message ?? error) } }));
  } else {
    answer(data);
  }
};
