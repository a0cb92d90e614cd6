/** One generation: what was asked, and what has come of it so far. */

export type Origin = "accepted" | "recovered" | "bonus" | "target" | "deferred";

export const ORIGINS: readonly Origin[] = ["accepted", "recovered", "bonus", "target", "deferred"];

/** A token of the output; its text may be empty while a character is incomplete. */
export interface Token {
  id: number;
  text: string;
  origin: Origin;
}

/** What the target model gave a token, and the likeliest others. */
export interface LogProbability {
  logprob: number;
  alternatives: { text: string; logprob: number }[];
}

/** What a peer says of its share of a round. */
export interface PeerTiming {
  queue_us?: number;
  forward_us?: number;
  accept_us?: number;
  total_us?: number;
  batch?: number;
}

/** A round: one draft and its verification. */
export interface Round {
  round: number;
  base_len: number;
  drafted: number;
  accepted: number;
  /** Whose draft tokens were accepted. */
  accepted_by?: { source: string; tokens: number }[];
  /** Where it went on without the drafter. */
  fallbacks?: { position: number; reason: string }[];
  emitted: number;
  draft_us: number;
  verify_us: number;
  wire_bytes: number;
  drafter?: PeerTiming | null;
  verifier?: PeerTiming | null;
}

/** A failure, as the API tells it or as the network does. */
export interface Failure {
  message: string;
  param: string | null;
  status: number | null;
}

/** The method and settings that were in effect. */
export interface Speculation {
  method: string;
  settings: Record<string, string>;
  seed: number;
  lossless: boolean;
  reproducible: boolean;
  exact: boolean;
}

export interface SpeculationMetrics {
  draft_acceptance_rate: number | null;
  mean_acceptance_length: number | null;
  num_draft_tokens: number;
  num_accepted_draft_tokens: number;
  fallback_reasons: string[];
}

export type Phase = "waiting" | "streaming" | "done" | "stopped" | "failed";

/** A generation. It is replaced by each change; its lists only ever grow, and are shared by old and new. */
export interface Run {
  id: number;
  path: string;
  body: Record<string, unknown>;
  phase: Phase;
  /** Whether it waits for another to be over before it is sent. */
  queued: boolean;
  text: string;
  reasoning: string;
  tokens: Token[];
  logprobs: LogProbability[];
  rounds: Round[];
  /** When it was sent, and when its first and latest text came, in milliseconds of the page's clock. */
  sentAt: number;
  firstAt: number | null;
  latestAt: number | null;
  /** How many tokens came with the first text. */
  firstTokens: number;
  completionTokens: number | null;
  cachedTokens: number | null;
  finish: string | null;
  speculation: Speculation | null;
  metrics: SpeculationMetrics | null;
  failure: Failure | null;
}

let lastId = 0;

/** Returns a generation that is about to be sent. */
export function newRun(path: string, body: Record<string, unknown>, now: number): Run {
  lastId += 1;
  return {
    id: lastId,
    path,
    body,
    phase: "waiting",
    queued: true,
    text: "",
    reasoning: "",
    tokens: [],
    logprobs: [],
    rounds: [],
    sentAt: now,
    firstAt: null,
    latestAt: null,
    firstTokens: 0,
    completionTokens: null,
    cachedTokens: null,
    finish: null,
    speculation: null,
    metrics: null,
    failure: null,
  };
}

/** Whether more of it may come. */
export function isUnderWay(run: Run): boolean {
  return run.phase === "waiting" || run.phase === "streaming";
}

/** Why it went on without the drafter, if it did: as the rounds tell, and of all of them once it has ended. */
export function fallbackReasons({ metrics, rounds }: Run): string[] {
  if (metrics) return metrics.fallback_reasons;
  const told = rounds.flatMap((round) => round.fallbacks ?? []);
  return [...new Set(told.map(({ reason }) => reason))];
}

/** How many tokens it has: by their list, or where the server sent none, by its count. */
export function tokenCount(run: Run): number {
  return run.tokens.length || (run.completionTokens ?? 0);
}

/** Returns the round that brought the token at `position`, by bisection: rounds come in order. */
export function roundOf(rounds: readonly Round[], position: number): Round | null {
  let [low, high] = [0, rounds.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const round = rounds[middle] as Round;
    if (position < round.base_len) high = middle;
    else if (position >= round.base_len + round.emitted) low = middle + 1;
    else return round;
  }
  return null;
}

/** How many tokens there were once the first `count` rounds were over. */
export function tokensAfter(rounds: readonly Round[], count: number): number {
  const last = rounds[count - 1];
  return last ? last.base_len + last.emitted : 0;
}
