// The page's Python, as both views ask it: a worker, the questions that it has not answered yet, and what is loading.

import { $ } from "./elements.js";

const waiting = new Map();
let worker = null;
let asked = 0;
let numpy = null; // the promise that NumPy is there, once it was asked for
let settleNumPy = null;
const onLost = [];
const onNumPy = [];

export const hasPython = () => worker !== null;
export const hasNumPy = () => document.documentElement.dataset.numpy === "loaded";

// The reply of a function of the page's Python to a text, as soon as there is one.
export const ask = (name, text) => {
  if (!worker) return Promise.reject(new Error("Python cannot run here."));
  asked += 1;
  worker.postMessage({ id: asked, name, text });
  return new Promise((resolve, reject) => waiting.set(asked, { resolve, reject }));
};

// Load NumPy behind the page, once; a promise that fails where it is not to be had, after which one may try again.
export const loadNumPy = () => {
  if (!worker) return Promise.reject(new Error("Python cannot run here."));
  numpy ??= new Promise((resolve, reject) => {
    settleNumPy = { resolve, reject };
    $("numpy").disabled = true;
    worker.postMessage({ numpy: true });
  });
  return numpy;
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

const hearOfNumPy = ({ loading, loaded, failed }) => {
  const root = document.documentElement.dataset;
  root.numpy = loaded ? "loaded" : failed ? "failed" : "loading";
  document.querySelectorAll(".numpy-status").forEach((each) => {
    each.textContent = loading ?? (loaded ? "NumPy is here." : `NumPy could not be loaded; shapes go on working. ${failed}`);
  });
  if (loaded) {
    settleNumPy.resolve();
    onNumPy.forEach((act) => act());
  }
  if (failed) {
    settleNumPy.reject(new Error(failed));
    numpy = null;
    $("numpy").disabled = false;
  }
};

const hear = ({ data }) => {
  if (data.loading) $("status").textContent = `Loading ${data.loading} …`;
  if (data.failed) lose(`Python could not be loaded: ${data.failed}.`);
  if (data.ready) {
    $("status").textContent = "Python is here.";
    document.documentElement.dataset.python = "ready";
    document.documentElement.dataset.milliseconds = String(Math.round(performance.now()));
  }
  if (data.numpy) hearOfNumPy(data.numpy);
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
