// Serves the page of this tree, as the coordinator does.
import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { join } from "node:path";

const DIST = join(import.meta.dirname, "../../services/coordinator/page/dist");
const FILES = { "/": "index.html", "/page.js": "page.js", "/page.css": "page.css" };
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css" };
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Answers with a file of the page. Returns false if `path` is none. */
export async function servePage(path, response) {
  const file = FILES[path];
  if (!file) return false;
  const type = TYPES[file.split(".").pop()];
  response.writeHead(200, { "content-type": type, "content-security-policy": POLICY });
  response.end(await readFile(join(DIST, file)));
  return true;
}

/** Listens on loopback. Returns the address, and what ends it. */
export function listen(handle, port = 0, prefix = "") {
  const server = createServer((asked, response) => {
    handle(asked, response).catch((error) => {
      console.error(error);
      response.destroy();
    });
  });
  const stop = () => {
    server.close();
    server.closeAllConnections();
  };
  return new Promise((resolve) => {
    server.listen(port, "127.0.0.1", () => {
      resolve({ url: `http://127.0.0.1:${server.address().port}${prefix}/`, stop });
    });
  });
}

/** Serves the page of this tree in front of a program that has another built in, or none. */
export function inFrontOf(url) {
  return listen(async (asked, response) => {
    if (await servePage(asked.url, response)) return;
    const { method, headers } = asked;
    const passed = request(new URL(asked.url, url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    passed.on("error", () => response.destroy());
    response.on("close", () => passed.destroy());
    asked.pipe(passed);
  });
}
