// Answers one question at a time; between two parts of an answer it looks for a newer one.
import { load } from "./theory.mjs";

const read = async (name) => {
  const reply = await fetch(new URL(name, import.meta.url));
  if (!reply.ok) throw new Error(`${name}: ${reply.status} ${reply.statusText}`);
  return new Uint8Array(await reply.arrayBuffer());
};
// Pyodide waits for ever for a part of itself that does not come
const own = globalThis.fetch;
globalThis.fetch = async (...asked) => {
  const reply = await own(...asked).catch((error) => error);
  if (!reply.ok) postMessage({ broken: `${asked[0]?.url ?? asked[0]}: ${reply.status ?? reply}` });
  if (reply instanceof Error) throw reply;
  return reply;
};
let newest = 0;
const asked = [];
let answers = null;
let working = false;

async function work() {
  if (working || !answers) return;
  working = true;
  while (asked.length) {
    const { id, question } = asked.pop();
    asked.length = 0;
    postMessage({ id, begun: true });
    try {
      for (const part of answers(question)) {
        postMessage({ id, part });
        await new Promise((done) => setTimeout(done)); // lets a newer question in
        if (newest !== id) break;
      }
    } catch (error) {
      return postMessage({ id, lost: String(error) }); // a Python that failed answers nothing more
    }
    postMessage({ id, done: true });
  }
  working = false;
}
onmessage = ({ data }) => {
  newest = data.id;
  asked.push(data);
  work();
};
try {
  answers = await load(read, new URL("./pyodide/", import.meta.url).href, (what) => postMessage({ loading: what }));
  postMessage({ ready: true });
  await work();
} catch (error) {
  postMessage({ broken: String(error) });
}
