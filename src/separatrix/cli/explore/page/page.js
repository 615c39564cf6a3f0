// The page: stacks put together by hand; all that is said of them comes from the package behind its engine.
import { ask as answersTo, begin } from "./engine.js";

const $ = (id) => document.getElementById(id);
const DEFAULT = "qwen3-next-80b";
const USUAL = ["full", "window", "gdn", "mamba2", "kda", "gla", "linear", "sparse", "loglinear"];
const SHOWN = 600; // layers of the strip

let about = { presets: [], mechanisms: {}, given: [], largest: 0 };
let stacks = []; // what is asked: {text, file, tiles, own, answer}, and what is shown instead where it cannot be read
let edited = 0;
let context = "";
let contextLinked = false; // whether a link gave it, and nothing was answered since
let asking = null; // the request under way
let waits; // until the hand rests

const make = (tag, attributes = {}, ...children) => {
  const { class: name = "", data = {}, ...own } = attributes;
  const element = Object.assign(document.createElement(tag), own);
  if (name) element.className = name;
  Object.assign(element.dataset, data);
  element.append(...children);
  return element;
};
// Text with `code` in it, as children of an element.
const coded = (text) => text.split(/`([^`]+)`/).map((part, place) => (place % 2 ? make("code", { textContent: part }) : part));
const number = (n) => Number(n).toLocaleString("en");
const stackOf = (text, more = {}) => ({ text, file: null, tiles: null, own: false, instead: null, answer: {}, ...more });
const here = () => stacks[edited];
const ofFile = (one) => one.file || about.given.includes(one.text);
const inTokens = (n) => `${number(n)} token${Number(n) === 1 ? "" : "s"}`;
// Where the context stands: of one that is no number yet, where the last answer was.
const tokens = () => (Number(context) > 0 ? Number(context) : stacks[0]?.answer.card?.context ?? 8192);

// ---- What is asked

async function ask() {
  asking?.abort();
  document.body.dataset.state = "asking";
  const mine = (asking = new AbortController());
  const asked = { stacks: stacks.map((one) => one.file ?? one.text), context };
  for (const old of $("rows").children) old.classList.add("old");
  $("state").textContent = "working …";
  try {
    for await (const said of answersTo(asked, mine.signal)) if (mine !== asking || !take(said)) break;
  } catch (error) {
    if (mine === asking) complain(error.message);
  }
  if (mine === asking && document.body.dataset.state === "asking") document.body.dataset.state = "refused";
}

// One part of an answer; nothing is returned where it ended the question.
function take(said) {
  if (said.error !== undefined) return failed(said);
  if (said.state) $("state").textContent = said.state;
  if (said.stack !== undefined) takeCard(stacks[said.stack], said);
  if (said.html) drawRows(said.html);
  if (said.answered) finish();
  return true;
}

function takeCard(stack, said) {
  if (said.tiles) {
    stack.answer = said;
    stack.instead = null;
    if (!stack.own) stack.tiles = said.tiles;
    complain("");
    context = String(said.card.context);
    contextLinked = false;
    drawStack();
  } else stack.answer.card = said.card;
  drawCaches();
}

function failed(said) {
  const place = said.lost ? edited : said.stack; // what ended the engine was the last to change
  const stack = stacks[place];
  const why = said.error.replace(/[^.?!]$/, "$&.");
  if (stack?.instead) {
    complain(`${stack.file ? stack.text : "The link's stack"} cannot be read: ${why} Shown instead: ${stack.instead.text}.`, true);
    stacks[place] = stack.instead;
    ask();
  } else if (place === undefined && contextLinked && context) {
    complain(`The link's context cannot be read: ${why} Shown instead: the model's own.`, true);
    context = "";
    ask();
  } else complain(said.error);
}

let kept = false; // whether the complaint outlives the next answer
function complain(text, keep = false) {
  if (!text && kept) return;
  $("wrong").hidden = !text;
  if (!(keep && kept)) $("wrong").replaceChildren();
  $("wrong").append(...coded(`${text} `));
  kept = keep;
  if (text) $("state").textContent = "";
}

function finish() {
  for (const old of document.querySelectorAll(".old")) old.remove();
  $("state").textContent = "";
  document.body.dataset.state = "answered";
}

// What somebody changed: drawn at once, asked when the hand rests.
function changed() {
  asking?.abort();
  asking = null; // an answer to what stood before would undo the change
  kept = contextLinked = false;
  document.body.dataset.state = "asking";
  drawStack();
  clearTimeout(waits);
  waits = setTimeout(ask, 120);
}

// ---- The stack

const grouped = (layers) => {
  const runs = [];
  for (const one of layers) {
    if (runs.at(-1)?.[0] === one) runs.at(-1)[1] += 1;
    else runs.push([one, 1]);
  }
  return runs.map(([one, times]) => (times > 1 ? `${one}*${times}` : one)).join(" + ");
};
const shortName = (layer) => layer.replace(/\([^()]*\)/g, "");
const namesIn = (layer) => shortName(layer).split("|");
// Shared sizes stand behind the stack as long as some layer has them.
const written = ({ period, times, rest, settings }) => {
  const sizes = new Set(period.flatMap(namesIn).flatMap((name) => about.mechanisms[name]?.[2] ?? []));
  const shared = settings.split(", ").filter((size) => sizes.has(size.split("=")[0])).join(", ");
  const whole = times > 1 ? `(${grouped(period)})*${times}` : grouped(period);
  const more = rest ? ` + ${grouped(period.slice(0, rest))}` : "";
  return whole + more + (shared ? ` @ ${shared}` : "");
};

// The tiles were changed by hand: from now on they say what the stack is.
function rebuilt(change) {
  const stack = here();
  const tiles = stack.tiles?.period.length ? structuredClone(stack.tiles) : { period: [], times: 1, rest: 0, settings: "" };
  change(tiles);
  if (!tiles.period.length) return;
  tiles.rest %= tiles.period.length;
  Object.assign(stack, stackOf(written(tiles), { tiles, own: true, answer: stack.answer }));
  changed();
}

const kindOf = (layer) => {
  const kinds = namesIn(layer).map((name) => about.mechanisms[name]?.[1] ?? "other");
  return kinds.find((kind) => kind !== "recurrent") ?? "recurrent";
};

function drawStack() {
  const stack = here();
  const { period = [], times = 1, rest = 0 } = stack.tiles ?? {};
  const active = document.activeElement?.closest?.("#tiles") ? Number(document.activeElement.dataset.place) : null;
  $("tiles").replaceChildren(...period.map((layer, place) => {
    const ariaLabel = `${layer}, layer ${place + 1} of ${period.length} of the period`;
    return make("button", { class: `tile ${kindOf(layer)}`, textContent: shortName(layer), title: layer, ariaLabel, data: { place } });
  }));
  if (stack.tiles && !period.length) $("tiles").append(make("span", { class: "hint", textContent: "No period is short enough to be shown: edit the text." }));
  if (active !== null) $("tiles").children[Math.min(active, period.length - 1)]?.focus();
  $("times").disabled = !period.length;
  $("times").max = Math.max(96, times);
  $("times").value = times;
  $("timesout").value = `${times}${rest ? `, and ${rest} layer${rest > 1 ? "s" : ""} of one more` : ""}`;
  $("preset").value = about.presets.includes(stack.text) && !stack.file ? stack.text : "";
  if (document.activeElement !== $("spec")) $("spec").value = ofFile(stack) ? stack.answer.spec ?? "" : stack.text;
  const pattern = [...(stack.answer.card?.pattern ?? "")];
  $("whole").replaceChildren(...pattern.slice(0, SHOWN).map((symbol, place) =>
    make("i", { class: stack.answer.groups?.[symbol] ?? "other", textContent: symbol, title: `layer ${place + 1}` })));
  if (pattern.length > SHOWN) $("whole").append(`… ${number(pattern.length - SHOWN)} more`);
  if (document.activeElement !== $("context")) $("context").value = Number(context) ? number(context) : context;
  $("slider").value = Math.log2(tokens());
  $("slider").setAttribute("aria-valuetext", inTokens(tokens()));
  drawWhich();
  remember();
}

function drawWhich() {
  const names = stacks.map((one, place) => {
    const label = one.file ? one.answer.card?.name || "file" : one.text;
    const onclick = () => { edited = place; drawStack(); };
    return make("button", { class: "ab"[place], textContent: `${"AB"[place]}: ${label}`, title: label, ariaPressed: place === edited, onclick });
  });
  const more = stacks.length === 1
    ? make("button", { textContent: "+ compare with another stack", id: "compare" })
    : make("button", { textContent: "× only one", id: "single" });
  more.onclick = () => {
    if (stacks.length === 1) stacks.push({ ...stacks[0] });
    else stacks.splice(1 - edited, 1);
    edited = stacks.length - 1;
    $("rows").replaceChildren();
    changed();
  };
  $("which").replaceChildren(...(stacks.length > 1 ? names : []), more);
}

// The address holds all of it; of a dropped file its layers and sizes.
function remember() {
  const link = new URLSearchParams(stacks.map((one) => ["s", one.file ? one.answer.spec ?? DEFAULT : one.text]));
  if (context) link.append("n", context);
  history.replaceState(null, "", `#${link}`);
  const words = stacks.map((one) => (one.file ? "config.json" : /^[\w.-]+$/.test(one.text) ? one.text : `'${one.text}'`));
  $("command").textContent = `separatrix ${words.length > 1 ? "compare" : "analyze"} ${words.join(" ")}${context ? ` --context ${context}` : ""}`;
}

function fromLink() {
  const link = new URLSearchParams(location.hash.slice(1));
  const asked = link.getAll("s").filter(Boolean);
  const named = asked.slice(0, 2);
  stacks = (named.length ? named : [about.given[0] ?? DEFAULT]).map((text) => stackOf(text, { instead: stackOf(DEFAULT) }));
  kept = false;
  if (asked.length > 2) complain(`The link names ${asked.length} stacks. Shown: the first two.`, true);
  else if (location.hash.length > 1 && !asked.length) complain(`The link names no stack. Shown instead: ${stacks[0].text}.`, true);
  else complain("");
  context = link.get("n") ?? "";
  contextLinked = true;
  edited = 0;
  $("rows").replaceChildren();
  drawStack();
  ask();
}

// ---- What follows

function drawCaches() {
  const most = Math.max(...stacks.map((one) => one.answer.card?.cache.total_bytes ?? 0), 1);
  $("caches").replaceChildren(...stacks.flatMap(({ answer: { card, memory, bytes } }, place) => {
    if (!card) return [];
    const bar = make("div", { class: "bar" }, ...memory.map((row) => {
      const piece = make("i", { class: row.kind, title: `${row.title}: ${row.said}` });
      piece.style.width = `${(100 * row.bytes) / most}%`;
      return piece;
    }));
    const grows = memory.filter((row) => row.grows);
    const rate = grows.length ? grows.map((row) => row.grows).join(", ") : "whatever the length";
    const keys = memory.map((row) => make("span", {}, make("i", { class: row.kind }), `${row.title} ${row.said}`));
    const size = stacks.length > 1 ? make("span", { class: `name ${"ab"[place]}`, textContent: `${"AB"[place]}: ${card.name}` }) : "";
    const held = [card.holds && `Holds ${card.holds}.`, card.forgets && `Forgets ${card.forgets}.`].filter(Boolean).join(" ");
    return make("div", { class: "cache" }, size, make("b", { textContent: bytes }), ` at ${inTokens(card.context)}; ${rate}`,
      bar, make("div", { class: "keys" }, ...keys), held ? make("p", { class: "hint", textContent: held }) : "");
  }));
}

// A theorem that the site explains leads there.
const explained = (html) => html.replace(/<code>separatrix list theorems ([^<]+)<.code>/g, (told, key) =>
  (Object.hasOwn(about.links ?? {}, key) ? `<a href="${about.links[key]}">its page</a>` : told));

// The package's own words, escaped where they were made, before those of the last question; what was open stays so.
function drawRows(html) {
  const asks = (one) => one.querySelector("summary")?.firstChild.textContent;
  const made = make("template", { innerHTML: explained(html) }).content;
  for (const one of [...made.children]) {
    const old = asks(one) && [...$("rows").querySelectorAll(".old")].find((other) => asks(other) === asks(one));
    const active = old?.contains(document.activeElement);
    if (old) one.open = old.open;
    $("rows").insertBefore(one, $("rows").querySelector(".old"));
    if (active) one.firstChild.focus();
    old?.remove();
  }
}

// ---- Hands

$("preset").onchange = ({ target }) => { Object.assign(here(), stackOf(target.value || here().answer.spec || DEFAULT)); changed(); };
$("spec").oninput = ({ target }) => { Object.assign(here(), stackOf(target.value, { answer: here().answer, tiles: here().tiles })); changed(); };
$("times").oninput = ({ target }) => rebuilt((tiles) => { tiles.times = Number(target.value); });
$("slider").oninput = ({ target }) => { context = String(Math.round(2 ** target.value)); changed(); };
$("context").oninput = ({ target }) => { context = target.value.trim(); changed(); };

function add(name) {
  rebuilt((tiles) => tiles.period.push(tiles.period.find((layer) => shortName(layer) === name) ?? name));
}
function drawPalette() {
  const usual = USUAL.map((name) => make("button", {
    class: `tile ${kindOf(name)}`, textContent: `+ ${name}`, title: about.mechanisms[name]?.[0] ?? name, onclick: () => add(name),
  }));
  const more = make("select", { ariaLabel: "Add another kind of layer" }, new Option("more …", ""));
  for (const [name, [title]] of Object.entries(about.mechanisms)) if (!USUAL.includes(name)) more.add(new Option(`${name}: ${title}`, name));
  more.onchange = () => { if (more.value) add(more.value); more.value = ""; };
  $("palette").replaceChildren(...usual, more);
  for (const name of about.presets) $("preset").add(new Option(name, name));
}

async function read(file) {
  if (!file) return;
  if (file.size > about.largest / 2) return complain(`${file.name} has ${Math.round(file.size / 2 ** 20)} MiB; a config.json has a few KiB`);
  const text = (await file.text().catch(() => "")).trim();
  if (!text.startsWith("{")) return complain(`${file.name} is no config.json: it does not begin with {`);
  const { tiles, answer } = here();
  stacks[edited] = stackOf(file.name, { file: text, tiles, answer, instead: here() });
  changed();
}
$("file").onchange = ({ target }) => read(target.files[0]).finally(() => { target.value = ""; });
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => { event.preventDefault(); read(event.dataTransfer?.files[0]); });

// Tiles: dragged with mouse, pen or finger; moved with arrows and removed with Delete
let held = null;
const off = (event) => {
  const box = $("tiles").getBoundingClientRect();
  return event.clientY < box.top - 24 || event.clientY > box.bottom + 24 || event.clientX < box.left - 24 || event.clientX > box.right + 24;
};
const moved = (from, to) => rebuilt((tiles) => tiles.period.splice(to, 0, ...tiles.period.splice(from, 1)));
const removed = (place) => rebuilt((tiles) => tiles.period.splice(place, 1));
$("tiles").onpointerdown = (event) => {
  const tile = event.target.closest(".tile");
  if (!tile || event.button) return;
  held = Number(tile.dataset.place);
  $("tiles").setPointerCapture(event.pointerId);
};
$("tiles").onpointermove = (event) => {
  if (held === null) return;
  const over = document.elementFromPoint(event.clientX, event.clientY)?.closest("#tiles .tile");
  const to = Number(over?.dataset.place ?? held);
  if (to !== held) moved(held, to);
  held = to;
  const tile = $("tiles").children[held];
  tile?.classList.add("lift");
  tile?.classList.toggle("gone", off(event) && here().tiles.period.length > 1);
};
$("tiles").onpointerup = (event) => {
  if (held === null) return;
  const place = held;
  held = null;
  if (off(event)) removed(place);
  else $("tiles").children[place]?.focus();
  for (const tile of $("tiles").children) tile.classList.remove("lift", "gone");
};
$("tiles").onpointercancel = () => { held = null; drawStack(); };
$("tiles").onkeydown = (event) => {
  const place = Number(event.target.dataset?.place);
  const to = place + { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
  if (Number.isNaN(place)) return;
  if (["Delete", "Backspace"].includes(event.key)) removed(place);
  else if (to >= 0 && to < here().tiles.period.length) {
    moved(place, to);
    $("tiles").children[to].focus();
  } else return;
  event.preventDefault();
};

// ---- The start

addEventListener("hashchange", fromLink);
try {
  about = await begin((text) => {
    $("notice").hidden = false;
    $("notice").textContent = text;
  });
  drawPalette();
  fromLink();
} catch (error) {
  complain(error.message);
}
