// Runs the steps, one after the other. See `run`.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { inFrontOf } from "./files.mjs";
import { start as startMock } from "./mock.mjs";
import { startAll, startThree } from "./program.mjs";
import { hostileSteps } from "./steps_hostile.mjs";
import { lookSteps } from "./steps_look.mjs";
import { programSteps } from "./steps_program.mjs";
import { speedSteps } from "./steps_speed.mjs";
import { useSteps } from "./steps_use.mjs";
import { Visitor } from "./visitor.mjs";

const ROOT = join(import.meta.dirname, "../..");

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    short: { type: "boolean", default: false },
    tree: { type: "boolean", default: false },
    screenshots: { type: "string" },
    only: { type: "string", default: "" },
  },
});

const program = positionals[0] ?? built();
const begun = performance.now();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
const ends = [() => browser.close()];

/** What steps share. Servers are started when a step first wants them. */
const world = {
  browser,
  screenshots: values.screenshots && resolve(values.screenshots),
  all: once(() => served(startAll(program))),
  withToken: once(() => served(startAll(program, "a-token-of-this-test"))),
  three: () => served(startThree(program)),
  mock: once(() => startMock()),
  /** A mock of its own, for what others must not see. */
  otherMock: (options) => ended(startMock(options)),
  open: (url, options) => Visitor.open(browser, url, options),
};

const steps = [programSteps, useSteps, hostileSteps, lookSteps, speedSteps].flat();
let failures = 0;
for (const { name, long = false, run } of steps) {
  if ((values.short && long) || !name.includes(values.only)) continue;
  const from = performance.now();
  try {
    const told = await run(world);
    console.log(`ok    ${name}${told ? `: ${told}` : ""} (${seconds(from)})`);
  } catch (error) {
    failures += 1;
    console.log(`FAIL  ${name}: ${error.message} (${seconds(from)})`);
  }
}
for (const end of ends) await end();
console.log(failures === 0 ? `page: all held (${seconds(begun)})` : `page: ${failures} failed`);
process.exit(failures === 0 ? 0 : 1);

function built() {
  const paths = ["release", "debug"].map((kind) => join(ROOT, "target", kind, "outrider"));
  const found = paths.find((path) => existsSync(path));
  if (found) return found;
  console.error("page: name the program, or build it: cargo build --release");
  process.exit(2);
}

/** Has `--tree` put the tree's page in front of a program. */
async function served(starting) {
  const server = await ended(starting);
  if (!values.tree) return server;
  const front = await ended(inFrontOf(server.url));
  return { ...server, url: front.url };
}

async function ended(starting) {
  const server = await starting;
  ends.push(() => server.stop());
  return server;
}

function once(make) {
  let made = null;
  return () => {
    made ??= ended(make());
    return made;
  };
}

function seconds(from) {
  return `${((performance.now() - from) / 1000).toFixed(1)} s`;
}
