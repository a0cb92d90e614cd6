import assert from "node:assert/strict";
import { test } from "node:test";
import { FIRST_STATE, type State } from "../src/state.ts";
import { exported, imported } from "../src/transfer.ts";
import { round, runOf } from "./runs.ts";

const answer = runOf([1, 2, 3], { phase: "streaming", rounds: [round()] });
const TALK: State = {
  ...FIRST_STATE,
  system: "be brief",
  turns: {
    chat: [{ id: 5, text: "one", files: [{ name: "a", text: "b" }], runs: [answer.id] }],
    complete: [],
  },
  runs: { [answer.id]: answer },
};

test("a conversation comes back with its tokens and rounds, and nothing of it is under way", () => {
  const change = imported(exported(TALK), FIRST_STATE, () => 9);
  const turn = change?.turns?.chat[0];
  assert.equal(change?.system, "be brief");
  assert.deepEqual([turn?.id, turn?.text, turn?.files], [9, "one", [{ name: "a", text: "b" }]]);
  const run = change?.runs?.[turn?.runs[0] ?? -1];
  assert.deepEqual(run?.tokens, answer.tokens);
  assert.deepEqual(run?.rounds, answer.rounds);
  assert.equal(run?.phase, "done");
});

test("a chat becomes texts to complete where the model cannot chat", () => {
  const change = imported(exported(TALK), { ...FIRST_STATE, canChat: false }, () => 9);
  assert.equal(change?.mode, "complete");
  assert.equal(change?.turns?.complete.length, 1);
});

test("a file that is no conversation changes nothing", () => {
  const told = JSON.parse(exported(TALK));
  const others = [
    "",
    "[]",
    "null",
    '{"form": "outrider-conversation", "version": 1}',
    JSON.stringify({ ...told, version: 2 }),
    JSON.stringify({ ...told, turns: [{ text: "one", files: [], runs: [{ text: "x" }] }] }),
    JSON.stringify({ ...told, sampling: { seed: 3 } }),
    exported({ ...TALK, runs: { [answer.id]: { ...answer, path: "https://elsewhere.invalid/" } } }),
    JSON.stringify({ ...told, turns: [{ text: 1, files: [], runs: [] }] }),
  ];
  for (const json of others)
    assert.equal(
      imported(json, FIRST_STATE, () => 9),
      null,
      json,
    );
});
