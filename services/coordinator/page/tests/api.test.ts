import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, ApiError } from "../src/api.ts";
import type { Piece } from "../src/pieces.ts";

/** Has `fetch` answer with these, one after the other, and returns the headers that it was given. */
function answering(...answers: (Response | Error)[]): Headers[] {
  const seen: Headers[] = [];
  globalThis.fetch = async (_input, init) => {
    seen.push(new Headers(init?.headers));
    const answer = answers.shift();
    if (!answer || answer instanceof Error) throw answer ?? new TypeError("no answer");
    return answer;
  };
  return seen;
}

const refused = () => Response.json({ error: { message: "unknown token" } }, { status: 401 });
const unasked = () => assert.fail("a token was asked for");
const apiThat = (ask: (wrong: boolean) => Promise<string | null>) => new Api(ask, () => "lost");

async function all(api: Api): Promise<Piece[]> {
  const pieces: Piece[] = [];
  for await (const some of api.stream("v1/completions", {}, new AbortController().signal))
    pieces.push(...some);
  return pieces;
}

test("a token is asked for until one is right, and then kept", async () => {
  const seen = answering(refused(), refused(), Response.json({ ok: 1 }), Response.json({ ok: 2 }));
  const asked: boolean[] = [];
  const tokens = ["wrong", "right"];
  const api = apiThat(async (wrong) => {
    asked.push(wrong);
    return tokens.shift() ?? null;
  });
  assert.deepEqual(await api.get("v1/models"), { ok: 1 });
  assert.deepEqual(await api.get("v1/models"), { ok: 2 });
  assert.deepEqual(asked, [false, true]);
  const sent = seen.map((headers) => headers.get("authorization"));
  assert.deepEqual(sent, [null, "Bearer wrong", "Bearer right", "Bearer right"]);
});

test("calls that are refused together ask once", async () => {
  answering(refused(), refused(), Response.json(1), Response.json(2));
  let asked = 0;
  const api = apiThat(async () => {
    asked += 1;
    return "right";
  });
  await Promise.all([api.get("v1/models"), api.get("v1/methods")]);
  assert.equal(asked, 1);
});

test("without a token the server's error stands", async () => {
  answering(refused());
  await assert.rejects(apiThat(async () => null).get("v1/models"), { message: "unknown token" });
});

test("an error names its field; one that is not JSON its status", async () => {
  const error = { message: "7 is out of range", param: "top_p" };
  answering(Response.json({ error }, { status: 400 }), new Response("<html>", { status: 502 }));
  const api = apiThat(unasked);
  const failures: unknown[] = [];
  for (const _ of [1, 2]) await all(api).catch((error: ApiError) => failures.push(error.failure));
  assert.deepEqual(failures, [
    { message: "7 is out of range", param: "top_p", status: 400 },
    { message: "502 ", param: null, status: 502 },
  ]);
});

test("a stream that ends before it is done was lost", async () => {
  answering(new Response('data: {"choices": []}\n\n'));
  await assert.rejects(
    all(apiThat(unasked)),
    (error) => error instanceof ApiError && error.message === "lost",
  );
  answering(new TypeError("refused"));
  await assert.rejects(all(apiThat(unasked)), { message: "lost" });
});

test("what comes after the end is not read", async () => {
  answering(new Response('data: {"choices": []}\n\ndata: [DONE]\n\ndata: nonsense\n\n'));
  assert.deepEqual(await all(apiThat(unasked)), [{ choices: [] }]);
});
