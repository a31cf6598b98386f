// Builds the page into crates/server/ui-dist/. The output is the same on every machine.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");
const out = path.join(root, "../crates/server/ui-dist");
const src = (name) => path.join(root, "src", name);

// The page needs one highlighter, two themes and some languages of all that the diff component offers.
const replaced = {
  "shiki/langs": src("highlighting/languages.ts"),
  "@pierre/theming/themes": src("highlighting/themes.ts"),
  "@pierre/highlights/themes/loader": src("highlighting/absent.ts"),
  "@pierre/highlights": src("highlighting/absent.ts"),
  "@pierre/highlights/wasm": src("highlighting/absent.ts"),
  "shiki/engine/oniguruma": src("highlighting/absent.ts"),
  "shiki/wasm": src("highlighting/absent.ts"),
};
// The worker gets its languages and themes from the page.
const replacedInWorker = {
  ...replaced,
  "shiki/langs": src("highlighting/absent.ts"),
  "@pierre/theming/themes": src("highlighting/absent.ts"),
};
const replacing = (replaced) => ({
  name: "replacing",
  setup(build) {
    build.onResolve(
      { filter: /^(shiki\/|@pierre\/(theming\/themes|highlights))/ },
      ({ path: name, importer }) => {
        const own =
          replaced[name] ??
          (name.startsWith("@pierre/highlights") ? src("highlighting/absent.ts") : undefined);
        return own && importer !== own ? { path: own } : undefined;
      },
    );
  },
});

const usual = {
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2023"],
  charset: "utf8",
  legalComments: "none",
  absWorkingDir: root,
  write: false,
  metafile: true,
  logLevel: "warning",
  plugins: [replacing(replaced)],
  define: { "process.env.NODE_ENV": '"production"' },
  jsx: "automatic",
  jsxImportSource: "preact",
};

const worker = await build({
  ...usual,
  entryPoints: { worker: src("highlighting/worker.ts") },
  plugins: [replacing(replacedInWorker)],
  entryNames: "assets/[name]-[hash]",
  define: { ...usual.define, __DIFFS_WORKER__: "true" },
  outdir: "/",
});
const workerFile = worker.outputFiles.find((file) => file.path.endsWith(".js"));
const page = await build({
  ...usual,
  entryPoints: { main: src("main.tsx"), style: src("style.css") },
  entryNames: "assets/[name]-[hash]",
  chunkNames: "assets/[name]-[hash]",
  splitting: true,
  define: {
    ...usual.define,
    __DIFFS_WORKER__: "false",
    WORKER: JSON.stringify(`/${path.posix.relative("/", workerFile.path)}`),
  },
  outdir: "/",
});

const files = new Map();
for (const file of [...worker.outputFiles, ...page.outputFiles])
  files.set(file.path, Buffer.from(file.contents));

/** Returns an entry point and everything that it imports at once. */
function startOf(name) {
  const outputs = page.metafile.outputs;
  const found = (entry) => Object.keys(outputs).find((output) => outputs[output].entryPoint?.endsWith(entry));
  const seen = new Set();
  const add = (output) => {
    if (seen.has(output)) return;
    seen.add(output);
    for (const used of outputs[output].imports) if (used.kind === "import-statement") add(used.path);
  };
  add(found(name));
  return [...seen].map(
    (output) => `/${path.posix.relative("/", path.posix.resolve("/", output.replace(/^(\.\.\/)+/, "")))}`,
  );
}

const [script, ...others] = startOf("src/main.tsx");
// What the first difference needs is fetched beside the script, rather than after it.
const soon = [
  "diffs/dist/index.js",
  "diffs/dist/worker/index.js",
  "highlighter/backends/shiki.js",
  "highlighting/themes.ts",
  "theme/dist/pierre-light.mjs",
  "theme/dist/pierre-dark.mjs",
  "shiki/dist/core.mjs",
  "shiki/dist/engine-javascript.mjs",
];
const chunks = [...new Set([...others, ...soon.flatMap(startOf)])].filter((chunk) => chunk !== script);
const [style] = startOf("src/style.css");
const html = readFileSync(src("index.html"), "utf8")
  .replace("<!-- style -->", `<link rel="stylesheet" href="${style}">`)
  .replace(
    "<!-- scripts -->",
    [
      `<script type="module" src="${script}"></script>`,
      ...chunks.map((chunk) => `<link rel="modulepreload" href="${chunk}">`),
    ].join("\n    "),
  );
files.set("/", Buffer.from(html));
files.set("/icon.svg", readFileSync(src("icon.svg")));
files.set("/licenses.txt", Buffer.from(licenses()));

function licenses() {
  const used = new Set();
  const inputs = { ...page.metafile.inputs, ...worker.metafile.inputs };
  for (const input of Object.keys(inputs)) {
    const match = input.match(/^(?:\.\.\/)*node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    if (match) used.add(match[1]);
  }
  const text = (name) => {
    const directory = path.join(root, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(path.join(directory, "package.json"), "utf8"));
    const file = readdirSync(directory).find((found) => /^licen[cs]e/i.test(found));
    return `${name} ${version} (${license})\n\n${file ? readFileSync(path.join(directory, file), "utf8").trim() : ""}\n`;
  };
  return `The page contains parts of these packages.\n\n${[...used].sort().map(text).join("\n\n")}`;
}

const fileName = (asset) => (asset === "/" ? "index.html.gz" : `${asset.slice(1).replaceAll("/", "_")}.gz`);

if (process.argv.includes("--compare")) {
  const kept = new Map();
  for (const name of readdirSync(out).filter((name) => name.endsWith(".gz"))) {
    kept.set(name, gunzipSync(readFileSync(path.join(out, name))));
  }
  const problems = [];
  for (const [asset, bytes] of files) {
    const found = kept.get(fileName(asset));
    if (!found?.equals(bytes)) problems.push(`${asset} ${found ? "differs" : "is missing"}`);
    kept.delete(fileName(asset));
  }
  for (const name of kept.keys()) problems.push(`${name} is no longer built`);
  if (problems.length > 0) {
    console.error(
      `crates/server/ui-dist is out of date; run: ui/check --build\n  ${problems.slice(0, 20).join("\n  ")}`,
    );
    process.exit(1);
  }
} else {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const rows = [];
  for (const asset of [...files.keys()].sort()) {
    writeFileSync(path.join(out, fileName(asset)), gzipSync(files.get(asset), { level: 9 }));
    rows.push(
      `    Asset { path: ${JSON.stringify(asset)}, gzip: include_bytes!(${JSON.stringify(fileName(asset))}) },`,
    );
  }
  writeFileSync(path.join(out, "files.in"), `&[\n${rows.join("\n")}\n]\n`);
}

const first = ["/", style, script, ...chunks, `/${path.posix.relative("/", workerFile.path)}`];
const size = first.reduce((sum, asset) => sum + gzipSync(files.get(asset), { level: 9 }).length, 0);
console.log(
  `first view: ${Math.round(size / 1000)} kB compressed, ${first.length} files; all: ${files.size} files`,
);
if (size > 500_000) {
  console.error("the first view is larger than 500 kB");
  process.exit(1);
}
