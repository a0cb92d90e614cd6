/** Lays the parts of a round out in time. */

import type { PeerTiming, Round } from "./run.ts";

export type Lane = "draft" | "wire" | "verify" | "accept";

export const LANES: readonly Lane[] = ["draft", "wire", "verify", "accept"];

/** A part of a round, in microseconds from its beginning. */
export interface Part {
  lane: Lane;
  start: number;
  length: number;
}

/** Returns how long a round took. */
export function roundUs({ draft_us, verify_us }: Round): number {
  return draft_us + verify_us;
}

/** Returns the parts of a round in their order; none is empty. */
export function partsOf(round: Round): Part[] {
  const parts: Part[] = [];
  let start = 0;
  const add = (lane: Lane, length: number) => {
    if (length > 0) parts.push({ lane, start, length });
    start += Math.max(0, length);
  };
  const draft = shares(round.draft_us, round.drafter);
  const verify = shares(round.verify_us, round.verifier);
  add("wire", draft.out);
  add("draft", draft.work);
  add("wire", draft.back + verify.out);
  add("verify", verify.work - verify.accept);
  add("accept", verify.accept);
  add("wire", verify.back);
  return parts;
}

interface Shares {
  out: number;
  work: number;
  accept: number;
  back: number;
}

/**
 * Shares what the coordinator measured out: what the peer does not claim is the wire's. The way there and the
 * way back are not told apart, so each has half; the peer's queue stands on the way there.
 */
function shares(measured: number, peer: PeerTiming | null | undefined): Shares {
  const total = Math.min(measured, peer?.total_us ?? measured);
  const queue = Math.min(total, peer?.queue_us ?? 0);
  const work = total - queue;
  const wire = (measured - total) / 2;
  return { out: wire + queue, work, accept: Math.min(work, peer?.accept_us ?? 0), back: wire };
}
