import assert from "node:assert/strict";
import { test } from "node:test";
import { joined, type Piece } from "../src/pieces.ts";
import { roundOf, tokensAfter } from "../src/run.ts";
import { round, run } from "./runs.ts";

const token = (id: number, text: string) => ({ id, text, origin: "accepted" as const });

test("chats and completions are joined alike", () => {
  const tokens = [token(1, "On"), token(2, "ce")];
  const alternatives = [
    { text: "On", logprob: -0.5 },
    { text: "In", logprob: -1.5 },
  ];
  const chat: Piece = {
    choices: [
      {
        delta: { content: "Once" },
        tokens,
        logprobs: {
          content: [
            {
              token: "On",
              logprob: -0.5,
              top_logprobs: alternatives.map(({ text, logprob }) => ({ token: text, logprob })),
            },
          ],
        },
      },
    ],
  };
  const completion: Piece = {
    choices: [
      {
        text: "Once",
        tokens,
        logprobs: {
          tokens: ["On"],
          token_logprobs: [-0.5],
          top_logprobs: [{ In: -1.5, On: -0.5 }],
        },
      },
    ],
  };
  for (const piece of [chat, completion]) {
    const next = joined(
      run({ phase: "waiting", tokens: [], rounds: [], logprobs: [] }),
      [piece],
      5,
    );
    assert.equal(next.phase, "streaming");
    assert.equal(next.text, "Once");
    assert.deepEqual(next.tokens, tokens);
    assert.deepEqual(next.logprobs, [{ logprob: -0.5, alternatives }]);
    assert.equal(next.firstAt, 5);
    assert.equal(next.firstTokens, 2);
  }
});

test("a failure in the middle keeps what came", () => {
  const pieces: Piece[] = [{ choices: [{ text: "Once" }] }, { error: { message: "no verifier" } }];
  const next = joined(run({ phase: "waiting" }), pieces, 1);
  assert.equal(next.phase, "failed");
  assert.equal(next.text, "Once");
  assert.deepEqual(next.failure, { message: "no verifier", param: null, status: null });
});

test("the last pieces bring usage, seed and metrics", () => {
  const metrics = {
    draft_acceptance_rate: 0.5,
    mean_acceptance_length: 2,
    num_draft_tokens: 2,
    num_accepted_draft_tokens: 1,
    fallback_reasons: ["gone"],
  };
  const pieces: Piece[] = [
    { choices: [{ text: "", finish_reason: "length" }] },
    {
      choices: [],
      usage: { completion_tokens: 7, prompt_tokens_details: { cached_tokens: 64 } },
      metrics: { speculative_decoding: metrics },
    },
  ];
  const next = joined(run(), pieces, 1);
  assert.equal(next.finish, "length");
  assert.equal(next.completionTokens, 7);
  assert.equal(next.cachedTokens, 64);
  assert.deepEqual(next.metrics, metrics);
});

test("a token is found in the round that brought it", () => {
  const rounds = [
    round({ round: 1, base_len: 0, emitted: 3 }),
    round({ round: 2, base_len: 3, emitted: 1 }),
    round({ round: 4, base_len: 6, emitted: 2 }),
  ];
  const found = [0, 2, 3, 4, 5, 6, 7, 8].map(
    (position) => roundOf(rounds, position)?.round ?? null,
  );
  assert.deepEqual(found, [1, 1, 2, null, null, 4, 4, null]);
  assert.deepEqual(
    [0, 1, 2, 3].map((count) => tokensAfter(rounds, count)),
    [0, 3, 4, 8],
  );
});
