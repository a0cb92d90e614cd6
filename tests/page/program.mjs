// Starts the program that is tested, as one process or as three.
import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const READY_MS = 60_000;

/** Starts `PROGRAM serve all`. With a token, clients must show it. */
export async function startAll(program, token = null) {
  const [grpc, http] = [await freePort(), await freePort()];
  const env = token === null ? {} : { OUTRIDER__AUTH__CLIENT_TOKENS_FILE: tokenFile(token) };
  const flags = ["serve", "all", "--listen", local(grpc), "--http", local(http), "--admin", "off"];
  const process = begin(program, flags, env);
  await ready(http, process);
  return { url: `http://${local(http)}/`, stop: () => process.kill("SIGKILL") };
}

/**
 * Starts drafter, verifier and coordinator. `killDrafter` ends the first without a farewell; `hold` stops the
 * verifier where it is, and with it the text, until `goOn`.
 */
export async function startThree(program) {
  const [grpc, http, draft, verify] = await Promise.all([1, 2, 3, 4].map(freePort));
  const drafter = begin(program, ["serve", "drafter", "--listen", local(draft), "--admin", "off"]);
  const verifier = begin(program, [
    "serve",
    "verifier",
    "--listen",
    local(verify),
    "--admin",
    "off",
  ]);
  const peers = ["--drafter", `http://${local(draft)}`, "--verifier", `http://${local(verify)}`];
  const own = ["--listen", local(grpc), "--http", local(http), "--admin", "off"];
  const coordinator = begin(program, ["serve", "coordinator", ...own, ...peers]);
  const stop = () => {
    for (const each of [drafter, verifier, coordinator]) each.kill("SIGKILL");
  };
  await ready(http, coordinator);
  return {
    url: `http://${local(http)}/`,
    killDrafter: () => drafter.kill("SIGKILL"),
    hold: () => verifier.kill("SIGSTOP"),
    goOn: () => verifier.kill("SIGCONT"),
    stop,
  };
}

function begin(program, flags, env = {}) {
  const child = spawn(program, flags, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  child.log = "";
  child.stderr.on("data", (data) => {
    child.log = (child.log + data).slice(-4000);
  });
  process.on("exit", () => child.kill("SIGKILL"));
  return child;
}

async function ready(port, child) {
  const end = Date.now() + READY_MS;
  while (Date.now() < end && child.exitCode === null) {
    const answer = await fetch(`http://${local(port)}/ready`).catch(() => null);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`the program is not ready:\n${child.log}`);
}

function tokenFile(token) {
  const file = join(mkdtempSync(join(tmpdir(), "outrider-page-")), "tokens");
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  return file;
}

function local(port) {
  return `127.0.0.1:${port}`;
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
