// The page's Python, in a thread of its own.  There are two of these threads: one explains shapes, and starts at once;
// the other, with NumPy, is started when a reader wants values, and takes the first one's place when all has loaded.

import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = new URL(".", import.meta.url).href;
// Where the wheels of other packages lie: beside Pyodide if they were assembled with the page.
const packages = new URL("@PACKAGES@", here).href;
// What the memory of Python with all modules is kept under, in this browser: another build of the page has another name.
const build = "@BUILD@";

const pyodide = { indexURL: `${here}pyodide/`, packageBaseUrl: packages };

const bytes = async (name) => {
  const response = await fetch(here + name);
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
};

// Files of the page, asked for at once, and written where Python finds them as soon as there is a Python.
const fetchFiles = (...names) => {
  const fetched = Promise.all(names.map(bytes));
  fetched.catch(() => {}); // said where they are wanted
  return async (python) => (await fetched).forEach((each, i) => python.FS.writeFile(`/${names[i]}`, each));
};

// --- shapes ---------------------------------------------------------------------------------------

// The browser's store of what was kept; none where it keeps nothing, as some do without https.
const openStore = async () => {
  try {
    return await caches.open("xarr.python");
  } catch {
    return null;
  }
};

// Python as it was kept the last time, with its modules imported; null if it was not, or is of another build.
const restore = async (store) => {
  try {
    const kept = await store?.match(build);
    return kept ? await loadPyodide({ ...pyodide, _loadSnapshot: await kept.arrayBuffer() }) : null;
  } catch {
    await store.delete(build);
    return null;
  }
};

const keep = async (store, memory) => {
  try {
    for (const old of await store.keys()) await store.delete(old);
    await store.put(build, new Response(memory));
    postMessage({ kept: true });
  } catch {
    // No room: the next visit takes as long as this one.
  }
};

const startShapes = async () => {
  postMessage({ loading: "Python" });
  const addFiles = fetchFiles("shapes.zip", "page.py", "puzzle_page.py");
  const store = await openStore();
  const restored = await restore(store);
  const python = restored ?? (await loadPyodide({ ...pyodide, _makeSnapshot: store !== null }));
  await addFiles(python);
  if (!restored) {
    postMessage({ loading: "xarr" });
    // Imported from the archive as it is: unpacking its files would take longer than all else of it.
    python.runPython("import sys; sys.path[:0] = ['/', '/shapes.zip']; import page, puzzle_page; page.warm_up()");
    if (store) keep(store, python.makeMemorySnapshot());
  }
  postMessage({ ready: true, restored: restored !== null });
  return python;
};

// --- values ---------------------------------------------------------------------------------------

const startValues = async () => {
  const addFiles = fetchFiles("xarr.zip", "page.py", "puzzle_page.py");
  const python = await loadPyodide(pyodide);
  for (const name of ["numpy", "ml-dtypes", "typing-extensions"]) {
    postMessage({ numpy: { loading: `Loading ${name} …` } });
    let failed = "";
    await python.loadPackage(name, { errorCallback: (text) => (failed = text), messageCallback: () => {} });
    if (failed) throw new Error(failed);
  }
  postMessage({ numpy: { loading: "Loading the rest of xarr …" } });
  // As files, since the library reads tables that lie beside its modules.
  await addFiles(python);
  python.unpackArchive(python.FS.readFile("/xarr.zip"), "zip", { extractDir: "/xarr" });
  python.runPython("import sys; sys.path[:0] = ['/', '/xarr']; import numpy, page, puzzle_page; page.warm_up()");
  postMessage({ numpy: { loaded: true } });
  return python;
};

// --- questions ------------------------------------------------------------------------------------

const isForValues = self.name === "values";
const started = isForValues ? startValues() : startShapes();
started.catch((error) => {
  const failed = String(error.message ?? error);
  postMessage(isForValues ? { numpy: { failed } } : { failed });
});

// Functions that the page calls, with their modules.
const modules = { answer: "page", check: "puzzle_page" };

onmessage = async ({ data: { id, name, text } }) => {
  const python = await started;
  try {
    postMessage({ id, reply: python.pyimport(modules[name])[name](text) });
  } catch (error) {
    postMessage({ id, error: String(error.message ?? error) });
  }
};
