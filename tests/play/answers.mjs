// Replies of the page's modules under Pyodide in node: `node answers.mjs FOLDER questions.json > replies.json`, where
// FOLDER is the assembled page and each question a function with the text that it is asked.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, questions] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide/pyodide.mjs`).href);
const python = await loadPyodide({ indexURL: `${folder}/pyodide/` });
for (const name of ["shapes.zip", "page.py", "puzzle_page.py"]) {
  python.FS.writeFile(`/${name}`, readFileSync(`${folder}/${name}`));
}
python.globals.set("questions", readFileSync(questions, "utf8"));
console.log(
  python.runPython(`
import sys
sys.path[:0] = ['/', '/shapes.zip']
import hashlib, json, page, puzzle_page
functions = {'answer': page.answer, 'check': puzzle_page.check}
replies = [functions[name](text) for name, text in json.loads(questions)]
assert 'numpy' not in sys.modules
json.dumps([(json.loads(reply).get('text'), hashlib.sha256(reply.encode()).hexdigest()) for reply in replies])
`),
);
