// Makes dist/ out of src/: `node bundle.mjs FOLDER`. Called by `build`.
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

// The Apache License is long, and stands in the repository already.
const APACHE = "Taken under the Apache License 2.0, whose text is the file LICENSE of Outrider.";

const here = import.meta.dirname;
const [out = join(here, "dist")] = process.argv.slice(2);

await mkdir(out, { recursive: true });
const { metafile } = await build({
  entryPoints: [
    { in: "src/main.ts", out: "page" },
    { in: "src/page.css", out: "page" },
  ],
  absWorkingDir: here,
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  metafile: true,
});
await copyFile(join(here, "src/index.html"), join(out, "index.html"));
await writeFile(join(out, "NOTICES"), await notices(Object.keys(metafile.inputs)));

/** Returns the names, versions and licences of the libraries that `inputs` are of. */
async function notices(inputs) {
  const names = inputs.flatMap(
    (path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1] ?? [],
  );
  const parts = [...new Set(names)].sort().map(async (name) => {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((each) => /^licen[sc]e(\.|$)/i.test(each));
    const text = license.includes("Apache-2.0")
      ? APACHE
      : await readFile(join(folder, file), "utf8");
    return `${name} ${version}\nLicence: ${license}\n\n${text.trim()}\n`;
  });
  const rule = `\n${"-".repeat(80)}\n\n`;
  return ["The page contains these libraries.\n", ...(await Promise.all(parts))].join(rule);
}
