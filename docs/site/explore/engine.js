// The page's engine on the site: released models from what was computed beforehand, all else by the theory in a worker.
const GRACE = 1500; // milliseconds in which a search must heed a newer question, before its worker is ended
const INSTEAD = "Released models at their own contexts are still shown: they were computed beforehand. For everything else install the package and type: separatrix explore";
const WITHOUT = "This needs the theory's engine, which is not here. Install the package and type: separatrix explore";

let told = () => {};
let engine = null; // {worker, ready}: promises, so that whoever asks waits for it
let failed = ""; // why there is none
let last = 0; // the newest question's number
let shipped = {}; // preset -> its answer's parts
let waiting = new Map(); // question's number -> what takes its parts
let loading = "";

const fetched = async (name) => {
  const reply = await fetch(name);
  if (!reply.ok) throw new Error(`${name}: ${reply.status} ${reply.statusText}`);
  return reply;
};

export async function begin(tell) {
  told = tell;
  const [about, cards] = await Promise.all([fetched("start.json"), fetched("cards.bin")]);
  const found = await about.json();
  const plain = new Response(cards.body.pipeThrough(new DecompressionStream("gzip")));
  shipped = await plain.json();
  if (found.lacks) fail(`This copy of the site lacks the theory's engine: ${found.lacks}`);
  else launch();
  return found;
}

function fail(why) {
  failed = why;
  engine?.worker.terminate();
  engine = null;
  told(`${why} ${INSTEAD}`);
  for (const take of waiting.values()) take(null);
}

function launch() {
  if (typeof WebAssembly !== "object" || typeof Worker !== "function") return fail("This browser has no WebAssembly, which the theory needs.");
  engine?.worker.terminate();
  const worker = new Worker("worker.mjs", { type: "module" });
  const found = (engine = { worker, ready: null });
  found.ready = new Promise((done) => {
    worker.onmessage = ({ data }) => {
      if (engine !== found) return;
      if (data.lost) {
        launch();
        const error = `the theory's engine ended on this question and is loaded anew: ${data.lost}`;
        for (const [id, take] of waiting) take(id === data.id ? { part: JSON.stringify({ error, lost: true }) } : { again: true });
      } else if (data.broken) fail(`The theory's engine cannot run here: ${data.broken}.`);
      else if (data.ready) {
        loading = "";
        done();
      } else if (data.loading) {
        loading = `loading the theory: ${data.loading} …`;
        for (const take of waiting.values()) take({ state: loading });
      } else waiting.get(data.id)?.(data);
    };
  });
  worker.onerror = (event) => {
    event.preventDefault?.();
    if (engine === found) fail(`The theory's engine could not be loaded${event.message ? `: ${event.message}` : ""}.`);
  };
}

// What was computed beforehand, where that is the question.
function known({ stacks, context }) {
  const parts = stacks.length === 1 && Object.hasOwn(shipped, stacks[0]) ? shipped[stacks[0]] : null;
  // without an engine a released model is shown at its own context, whatever was asked: `failed` says so
  return parts && (failed || !context || context === String(parts[0].card.context)) ? parts : null;
}

export async function* ask(question, signal) {
  const parts = known(question);
  if (parts) return yield* structuredClone(parts);
  if (failed) return yield { error: WITHOUT };
  const id = (last += 1);
  const came = [];
  let wake = () => {};
  waiting.set(id, (data) => { came.push(data); wake(); });
  signal.addEventListener("abort", () => wake());
  try {
    if (loading) yield { state: loading };
    engine.worker.postMessage({ id, question });
    engine.ready.then(() => watch(id, engine));
    for (;;) {
      while (!came.length && !signal.aborted) await new Promise((done) => { wake = done; });
      if (signal.aborted) return;
      const data = came.shift();
      if (data === null) return yield { error: WITHOUT };
      if (data.again) engine.worker.postMessage({ id, question });
      else if (data.state) yield data;
      else if (data.done) return;
      else if (data.part) yield JSON.parse(data.part);
    }
  } finally {
    waiting.delete(id);
  }
}

// A worker that still searches for an older question is ended, and the newest asked anew.
function watch(id, asked) {
  const take = waiting.get(id);
  if (!take) return;
  let begun = false;
  waiting.set(id, (data) => { begun ||= Boolean(data?.begun || data?.part); take(data); });
  setTimeout(() => {
    if (begun || id !== last || engine !== asked || !waiting.has(id)) return;
    launch();
    take({ again: true });
    engine?.ready.then(() => watch(id, engine));
  }, GRACE);
}
