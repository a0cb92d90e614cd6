import assert from "node:assert/strict";
import { test } from "node:test";
import {
  acceptanceRate,
  byPosition,
  bytesPerToken,
  firstTokenMs,
  tokensPerRound,
  tokensPerSecond,
} from "../src/figures.ts";
import { partsOf, roundUs } from "../src/lanes.ts";
import { round, run, runOf } from "./runs.ts";

test("speed counts from the first text on", () => {
  const streamed = runOf([1, 2, 3, 4, 5], {
    sentAt: 100,
    firstAt: 300,
    firstTokens: 1,
    latestAt: 1300,
  });
  assert.equal(firstTokenMs(streamed), 200);
  assert.equal(tokensPerSecond(streamed), 4);
});

test("the speed of what came at once counts from sending on", () => {
  const atOnce = runOf([1, 2, 3], { sentAt: 0, firstAt: 500, firstTokens: 3, latestAt: 500 });
  assert.equal(tokensPerSecond(atOnce), 6);
  assert.equal(tokensPerSecond({ ...atOnce, phase: "streaming" }), null);
});

test("what nothing is known of is null", () => {
  assert.equal(firstTokenMs(run()), null);
  assert.equal(tokensPerSecond(run()), null);
  assert.equal(acceptanceRate([]), null);
  assert.equal(tokensPerRound([]), null);
  assert.equal(bytesPerToken([]), null);
  assert.equal(acceptanceRate([round({ drafted: 0, accepted: 0 })]), null);
});

test("rounds are summed, not averaged", () => {
  const rounds = [round(), round({ drafted: 1, accepted: 0, emitted: 1, wire_bytes: 90 })];
  assert.equal(acceptanceRate(rounds), 3 / 5);
  assert.equal(tokensPerRound(rounds), 2.5);
  assert.equal(bytesPerToken(rounds), 80);
});

test("a position counts the rounds that drafted so far", () => {
  const rounds = [round({ drafted: 3, accepted: 2 }), round({ drafted: 1, accepted: 1 })];
  const expected = [
    { drafted: 2, accepted: 2 },
    { drafted: 1, accepted: 1 },
    { drafted: 1, accepted: 0 },
  ];
  assert.deepEqual(byPosition(rounds), expected);
});

test("the parts of a round make up its time, in order", () => {
  const whole = round({
    drafter: { queue_us: 100, forward_us: 500, total_us: 700 },
    verifier: { queue_us: 50, forward_us: 1700, total_us: 1900, accept_us: 40 },
  });
  const parts = partsOf(whole);
  assert.deepEqual(
    parts.map(({ lane, length }) => [lane, length]),
    [
      ["wire", 200],
      ["draft", 600],
      ["wire", 250],
      ["verify", 1810],
      ["accept", 40],
      ["wire", 100],
    ],
  );
  let end = 0;
  for (const { start, length } of parts) {
    assert.equal(start, end);
    end = start + length;
  }
  assert.equal(end, roundUs(whole));
});

test("a round without a draft, or without what peers say, has no empty parts", () => {
  const alone = round({ draft_us: 0, drafter: null, verifier: null });
  assert.deepEqual(partsOf(alone), [{ lane: "verify", start: 0, length: 2100 }]);
});
