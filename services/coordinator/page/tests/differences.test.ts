import assert from "node:assert/strict";
import { test } from "node:test";
import { compared } from "../src/differences.ts";
import { run, runOf } from "./runs.ts";

test("equal tokens and texts are identical", () => {
  assert.deepEqual(compared(runOf([1, 2, 3]), runOf([1, 2, 3])), { is: "identical" });
});

test("the first token that differs is found while more may come", () => {
  const growing = runOf([1, 9], { phase: "streaming" });
  assert.deepEqual(compared(runOf([1, 2, 3]), growing), { is: "different", at: 1 });
});

test("an equal beginning says nothing as long as more may come", () => {
  const growing = runOf([1, 2], { phase: "streaming" });
  assert.deepEqual(compared(growing, runOf([1, 2, 3])), { is: "unknown" });
});

test("one that ended earlier differs where it ends", () => {
  assert.deepEqual(compared(runOf([1, 2]), runOf([1, 2, 3])), { is: "different", at: 2 });
});

test("what was stopped is no reason to call the other different or identical", () => {
  const stopped = runOf([1, 2], { phase: "stopped" });
  assert.deepEqual(compared(stopped, runOf([1, 2, 3])), { is: "unknown" });
});

test("without tokens the texts are compared", () => {
  assert.deepEqual(compared(run({ text: "a" }), run({ text: "b" })), { is: "different", at: null });
  assert.deepEqual(compared(run({ text: "a" }), run({ text: "a" })), { is: "identical" });
});
