/** Compares two generations. */

import { isUnderWay, type Run } from "./run.ts";

export type Comparison =
  | { is: "unknown" }
  | { is: "identical" }
  /** The number of the first token that differs, from 0; null where tokens are not told. */
  | { is: "different"; at: number | null };

/** Compares what has come of two runs. As long as more may come, equal beginnings say nothing yet. */
export function compared(one: Run, other: Run): Comparison {
  const haveTokens = one.tokens.length > 0 && other.tokens.length > 0;
  const at = haveTokens ? firstDifference(one, other) : null;
  if (at !== null) return { is: "different", at };
  if (isUnderWay(one) || isUnderWay(other)) return { is: "unknown" };
  if (one.phase !== "done" || other.phase !== "done") return { is: "unknown" };
  if (one.text !== other.text) return { is: "different", at: null };
  return { is: "identical" };
}

/**
 * Returns where the lists of tokens part. One that is the beginning of the other differs at its end, once
 * it is over.
 */
function firstDifference(one: Run, other: Run): number | null {
  const [ours, theirs] = [one.tokens, other.tokens];
  const shared = Math.min(ours.length, theirs.length);
  for (let at = 0; at < shared; at += 1) {
    if (ours[at]?.id !== theirs[at]?.id) return at;
  }
  const shorter = ours.length < theirs.length ? one : other;
  return ours.length !== theirs.length && shorter.phase === "done" ? shared : null;
}
