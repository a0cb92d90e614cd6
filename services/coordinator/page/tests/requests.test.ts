import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyOf, checkSeed, speculation, targetAlone, whole } from "../src/requests.ts";
import { FIRST_STATE, type State, type Turn } from "../src/state.ts";
import { run } from "./runs.ts";

const turn = (id: number, text: string, runs: number[] = []): Turn => ({
  id,
  text,
  files: [],
  runs,
});

test("a chat sends what was said before, without turns that have no answer", () => {
  const turns = [turn(1, "one", [10]), turn(2, "two", [11]), turn(3, "three")];
  const state: State = {
    ...FIRST_STATE,
    system: "be brief",
    turns: { chat: turns, complete: [] },
    runs: { 10: run({ text: "first" }), 11: run({ text: "" }) },
  };
  const { messages } = bodyOf(state, turns[2] as Turn, 0, null);
  assert.deepEqual(messages, [
    { role: "system", content: "be brief" },
    { role: "user", content: "one" },
    { role: "assistant", content: "first" },
    { role: "user", content: "three" },
  ]);
});

test("empty fields are left out, and the others are numbers", () => {
  const sampling = { temperature: "0.5", top_p: "", max_tokens: "64", seed: "" };
  const state: State = { ...FIRST_STATE, mode: "complete", sampling };
  const body = bodyOf(state, turn(1, "Once"), 0, 7);
  assert.equal(body.temperature, 0.5);
  assert.equal(body.max_tokens, 64);
  assert.equal(body.seed, 7);
  assert.equal("top_p" in body, false);
  assert.equal("logprobs" in body, false);
});

test("a seed that JSON's numbers would change is refused", () => {
  checkSeed({});
  checkSeed({ seed: Number.MAX_SAFE_INTEGER });
  for (const seed of [2 ** 60, 1.5, Number.NaN])
    assert.throws(() => checkSeed({ seed }), /whole number/);
});

test("settings are sent as what they are", () => {
  const values = { alpha: "0.3", mean: "false", beta: "tuned", rule: "", draft_len: " 4 " };
  const expected = { method: "lossy", alpha: 0.3, mean: false, beta: "tuned", draft_len: 4 };
  assert.deepEqual(speculation({ method: "lossy", values }), expected);
});

test("the target alone is asked the same, with the same seed and no method", () => {
  const body = { prompt: "Once", temperature: 1, speculation: { method: "lossy" } };
  assert.deepEqual(targetAlone(body, 3), {
    prompt: "Once",
    temperature: 1,
    seed: 3,
    speculation: { enabled: false },
  });
});

test("a file stands in a fence that it cannot close", () => {
  const text = whole({ text: "look:", files: [{ name: "a.md", text: "````\nx\n````" }] });
  assert.equal(text, "look:\n\na.md:\n`````\n````\nx\n````\n`````");
});
