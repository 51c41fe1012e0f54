// Answers of the page's module under Pyodide in node: `node answers.mjs FOLDER states.json > answers.json`, where
// FOLDER is the assembled page.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, states] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide/pyodide.mjs`).href);
const python = await loadPyodide({ indexURL: `${folder}/pyodide/` });
python.FS.writeFile("/xarr.whl", readFileSync(`${folder}/xarr.whl`));
python.FS.writeFile("/page.py", readFileSync(`${folder}/page.py`));
python.globals.set("states", readFileSync(states, "utf8"));
console.log(
  python.runPython(`
import sys
sys.path[:0] = ['/', '/xarr.whl']
import hashlib, json, page
replies = [page.answer(json.dumps(state)) for state in json.loads(states)]
assert 'numpy' not in sys.modules
json.dumps([(json.loads(reply).get('text'), hashlib.sha256(reply.encode()).hexdigest()) for reply in replies])
`),
);
