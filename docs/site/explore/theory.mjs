// The theory itself, in a Python that runs in the browser or in Node: `read` gives the bytes of a file beside this one.
const GLUE = `
import json, sys
sys.path.insert(0, "/theory")
from pyodide.ffi import to_js
from separatrix_products import maxima
from separatrix.core.numbers import plain
from separatrix.cli.explore.answers import Question, told

plain.maxima = lambda rows, columns, inner: maxima(to_js(rows), to_js(columns), inner).to_py()

def begin(text):
    asked = json.loads(text)
    return map(json.dumps, told(Question(tuple(asked["stacks"]), asked["context"])))
`;

// Of each row the largest of its products with the columns: sums of whole numbers, exact in doubles (core/numbers/plain.py).
function maxima(rows, columns, inner) {
  const found = new Float64Array(rows.length / inner);
  for (let row = 0; row < found.length; row += 1) {
    let most = -Infinity;
    const from = row * inner;
    for (let column = 0; column < columns.length; column += inner) {
      let sum = 0;
      for (let i = 0; i < inner; i += 1) sum += rows[from + i] * columns[column + i];
      if (sum > most) most = sum;
    }
    found[row] = most;
  }
  return found;
}

// Answers a question with an iterator over its parts, as JSON.
export async function load(read, indexURL, tell = () => {}) {
  tell("Python");
  const { loadPyodide } = await import("./pyodide/pyodide.mjs");
  const [python, flint, sources] = await Promise.all([loadPyodide({ indexURL }), read("flint.whl"), read("separatrix.zip")]);
  tell("exact numbers");
  python.unpackArchive(flint, "wheel");
  tell("theorems");
  python.unpackArchive(sources, "zip", { extractDir: "/theory" });
  python.registerJsModule("separatrix_products", { maxima });
  python.runPython(GLUE);
  const begin = python.globals.get("begin");
  return function* answers(question) {
    const parts = begin(JSON.stringify(question));
    try {
      for (let { value, done } = parts.next(); !done; { value, done } = parts.next()) yield value;
    } finally {
      parts.destroy();
    }
  };
}
