// Bytecode for the browser's Python, made by the same Python in Node: node compile.mjs FOLDER SOURCES.zip OUT.zip
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [, , folder, from, to] = process.argv;
const { loadPyodide } = await import(pathToFileURL(path.resolve(folder, "pyodide/pyodide.mjs")));
const python = await loadPyodide({ indexURL: path.resolve(folder, "pyodide") + "/" });
python.unpackArchive(new Uint8Array(fs.readFileSync(from)), "zip", { extractDir: "/in" });
python.runPython(`
import compileall, pathlib, py_compile, zipfile

compileall.compile_dir(
    "/in", quiet=1, legacy=True, optimize=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
)
with zipfile.ZipFile("/out.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
    for file in sorted(pathlib.Path("/in").rglob("*")):
        if file.is_file() and file.suffix != ".py":
            out.write(file, file.relative_to("/in"))
`);
fs.writeFileSync(to, python.FS.readFile("/out.zip"));
