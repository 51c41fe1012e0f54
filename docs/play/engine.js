// The page's Python, as both views ask it: a thread, the questions that it has not answered yet, and what is loading.

import { $ } from "./elements.js";

const waiting = new Map();
let worker = null;
let asked = 0;
let numpy = null; // the promise that NumPy is there, once it was asked for
const onLost = [];
const onNumPy = [];

export const hasPython = () => worker !== null;
export const hasNumPy = () => document.documentElement.dataset.numpy === "loaded";

// The reply of a function of the page's Python to a text, as soon as there is one.
export const ask = (name, text) => {
  if (!worker) return Promise.reject(new Error("Python cannot run here."));
  asked += 1;
  const question = { id: asked, name, text };
  worker.postMessage(question);
  return new Promise((resolve, reject) => waiting.set(question.id, { question, resolve, reject }));
};

// Load NumPy behind the page, in a thread that takes the place of the first one; a promise that fails where it is not to
// be had, after which one may try again.
export const loadNumPy = () => {
  if (!worker) return Promise.reject(new Error("Python cannot run here."));
  numpy ??= new Promise((resolve, reject) => {
    const values = new Worker("python.js", { type: "module", name: "values" });
    const fail = (why) => {
      values.terminate();
      numpy = null;
      sayNumPy("failed", `NumPy could not be loaded; shapes go on working. ${why}`);
      reject(new Error(`NumPy could not be loaded: ${why}`));
    };
    values.onmessage = (event) => {
      const { loading, loaded, failed } = event.data.numpy ?? {};
      if (loading) sayNumPy("loading", loading);
      if (failed) fail(failed);
      if (loaded) {
        replaceWorker(values);
        sayNumPy("loaded", "NumPy is here.");
        onNumPy.forEach((act) => act());
        resolve();
      }
      hear(event);
    };
    values.onerror = (event) => fail(event.message ?? "the page's script is missing.");
    sayNumPy("loading", "Loading another Python …");
  });
  return numpy;
};

const sayNumPy = (state, text) => {
  document.documentElement.dataset.numpy = state;
  document.querySelectorAll(".numpy-status").forEach((each) => (each.textContent = text));
  document.querySelectorAll(".load-numpy").forEach((each) => (each.disabled = state !== "failed"));
};

// The other thread answers from now on, what was asked before included.
const replaceWorker = (next) => {
  worker?.terminate();
  worker = next;
  document.documentElement.dataset.python = "ready";
  for (const { question } of waiting.values()) worker.postMessage(question);
};

// What to do where there is no Python, and once NumPy is there.
export const whenLost = (act) => onLost.push(act);
export const whenNumPy = (act) => onNumPy.push(act);

const lose = (why) => {
  worker?.terminate();
  worker = null;
  document.documentElement.dataset.python = "none";
  $("status").textContent = why;
  for (const { reject } of waiting.values()) reject(new Error(why));
  waiting.clear();
  onLost.forEach((act) => act(why));
};

const hear = ({ data }) => {
  if (data.loading) $("status").textContent = `Loading ${data.loading} …`;
  if (data.failed) lose(`Python could not be loaded: ${data.failed}.`);
  if (data.ready) {
    $("status").textContent = "Python is here.";
    document.documentElement.dataset.python = "ready";
    document.documentElement.dataset.milliseconds = String(Math.round(performance.now()));
    document.documentElement.dataset.restored = String(data.restored);
  }
  if (data.kept) document.documentElement.dataset.kept = "true";
  const question = waiting.get(data.id);
  if (!question) return;
  waiting.delete(data.id);
  if (data.error) question.reject(new Error(data.error));
  else question.resolve(JSON.parse(data.reply));
};

export const startPython = () => {
  if (typeof WebAssembly !== "object") {
    lose("This browser has no WebAssembly, so Python cannot run here.");
    return;
  }
  worker = new Worker("python.js", { type: "module" });
  worker.onmessage = hear;
  worker.onerror = (event) => lose(`Python could not be loaded: ${event.message ?? "its script is missing"}.`);
};
