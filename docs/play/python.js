// The page's Python, in a thread of its own: it is asked for the answers to states, and says what it is loading.

import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = new URL(".", import.meta.url).href;
// Wheels of other packages; a folder of this site if they were assembled with it.
const packages = "https://cdn.jsdelivr.net/pyodide/v@VERSION@/full/";

const bytes = async (name) => {
  const response = await fetch(here + name);
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
};

const start = async () => {
  postMessage({ loading: "Python" });
  const [python, wheel, page] = await Promise.all([
    loadPyodide({ indexURL: `${here}pyodide/`, packageBaseUrl: packages }),
    bytes("xarr.whl"),
    bytes("page.py"),
  ]);
  postMessage({ loading: "xarr" });
  // Imported from the archive as it is: unpacking its files would take longer than all else of it.
  python.FS.writeFile("/xarr.whl", wheel);
  python.FS.writeFile("/page.py", page);
  python.runPython("import sys; sys.path[:0] = ['/', '/xarr.whl']; import page");
  postMessage({ ready: true });
  return python;
};

const started = start();
started.catch((error) => postMessage({ failed: String(error.message ?? error) }));

const answer = async ({ id, state }) => {
  const python = await started;
  postMessage({ id, reply: python.pyimport("page").answer(state) });
};

const loadNumPy = async () => {
  const python = await started;
  for (const name of ["numpy", "ml-dtypes", "typing-extensions"]) {
    postMessage({ numpy: `loading ${name} …` });
    let failed = "";
    await python.loadPackage(name, { errorCallback: (text) => (failed = text), messageCallback: () => {} });
    if (failed) throw new Error(failed);
  }
  postMessage({ numpy: "loading the rest of xarr …" });
  // Anew and from files, since the library reads tables that lie beside its modules.
  python.unpackArchive(python.FS.readFile("/xarr.whl"), "zip", { extractDir: "/whole" });
  python.runPython(`
import sys
for name in [each for each in sys.modules if each.partition(".")[0] in ("xarr", "page")]:
    del sys.modules[name]
sys.path[:2] = ["/", "/whole"]
import numpy, page
`);
  postMessage({ numpy: "NumPy is here.", loaded: true });
};

onmessage = async ({ data }) => {
  if (data.numpy) {
    loadNumPy().catch((error) => postMessage({ numpyFailed: String(error.message ?? error) }));
  } else {
    await answer(data);
  }
};
