// The site's theory in Node, to be compared with the package: node ask.mjs FOLDER, a question per line of JSON, an answer's parts per line.
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const folder = path.resolve(process.argv[2]);
const { load } = await import(pathToFileURL(path.join(folder, "theory.mjs")));
const read = (name) => new Uint8Array(fs.readFileSync(path.join(folder, name)));
const answers = await load(read, path.join(folder, "pyodide") + "/");
for await (const line of readline.createInterface({ input: process.stdin }))
  process.stdout.write(`[${[...answers(JSON.parse(line))].join(",")}]\n`);
