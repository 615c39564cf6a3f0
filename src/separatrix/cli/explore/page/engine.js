// The page's engine where `separatrix explore` serves it: the package behind the same address.
const NO_ANSWER = "separatrix explore does not answer: is it still running?";

async function fetched(path, settings) {
  try {
    return await fetch(path, settings);
  } catch (error) {
    throw error.name === "AbortError" ? error : new Error(NO_ANSWER);
  }
}

export const begin = async () => (await fetched("start")).json();

export async function* ask(question, signal) {
  const reply = await fetched("ask", {
    method: "POST", body: JSON.stringify(question), headers: { "Content-Type": "application/json" }, signal,
  });
  if (!reply.ok) throw new Error(`this question is refused (${reply.status} ${reply.statusText})`);
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) yield JSON.parse(part);
  }
}
