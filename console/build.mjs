// Builds the page into fetcher/api/console, or, with --check, says whether what lies there is it.
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "fetcher", "api", "console");
const inputs = ["package.json", "package-lock.json", "tsconfig.json", "build.mjs", "index.html", "icon.svg"];
const libraries = ["preact", "@preact/signals", "@preact/signals-core"];

async function sources() {
  const found = await readdir(join(here, "src"), { recursive: true, withFileTypes: true });
  const files = found
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(here.length + 1).replaceAll("\\", "/"));
  return [...inputs, ...files].sort();
}

// The same digest as tests/unit/api/test_console_build.py takes: names and contents, in byte order.
async function digestOfSources() {
  const digest = createHash("sha256");
  for (const name of await sources()) {
    const content = createHash("sha256").update(await readFile(join(here, name))).digest("hex");
    digest.update(`${content}  ${name}\n`);
  }
  return digest.digest("hex");
}

async function licences() {
  const texts = [];
  for (const name of libraries) {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const text = await readFile(join(folder, "LICENSE"), "utf8");
    texts.push(`${name} ${version} (${license})\n\n${text.trim()}\n`);
  }
  return texts.join(`\n${"-".repeat(78)}\n\n`);
}

async function outputs() {
  const built = await build({
    absWorkingDir: here,
    entryPoints: { console: "src/main.tsx" },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    charset: "utf8",
    legalComments: "none",
    outdir: "out",
    write: false,
  });
  const files = new Map(built.outputFiles.map((file) => [file.path.split("/").pop(), Buffer.from(file.contents)]));
  for (const name of ["index.html", "icon.svg"]) files.set(name, await readFile(join(here, name)));
  files.set("LICENSES.txt", Buffer.from(await licences()));
  files.set("console.json", Buffer.from(`${JSON.stringify({ sources: await digestOfSources() }, null, 2)}\n`));
  return files;
}

const made = await outputs();
if (process.argv.includes("--check")) {
  const wrong = [];
  for (const [name, content] of made) {
    const committed = await readFile(join(target, name)).catch(() => null);
    if (committed === null || !committed.equals(content)) wrong.push(name);
  }
  if (wrong.length > 0) {
    console.error(`not what the sources make: ${wrong.join(", ")}; run: make console`);
    process.exit(1);
  }
} else {
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  for (const [name, content] of made) {
    await writeFile(join(target, name), content);
    console.log(`${name}: ${content.length} bytes`);
  }
}
