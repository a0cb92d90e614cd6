/** Runs and rounds for tests. */

import { newRun, type Origin, type Round, type Run } from "../src/run.ts";

export function run(given: Partial<Run> = {}): Run {
  return { ...newRun("v1/completions", {}, 0), phase: "done", ...given };
}

/** A run of the tokens with these ids, whose texts are their ids. */
export function runOf(ids: number[], given: Partial<Run> = {}): Run {
  const origin: Origin = "accepted";
  const tokens = ids.map((id) => ({ id, text: `${id} `, origin }));
  return run({ tokens, text: tokens.map(({ text }) => text).join(""), ...given });
}

export function round(given: Partial<Round> = {}): Round {
  const counts = { round: 1, base_len: 0, drafted: 4, accepted: 3, emitted: 4 };
  return { ...counts, draft_us: 900, verify_us: 2100, wire_bytes: 310, ...given };
}
