/** Joins the pieces of a stream to a run. */

import type { LogProbability, Round, Run, Speculation, SpeculationMetrics, Token } from "./run.ts";

/** A piece, as chats and completions have it. */
export interface Piece {
  choices?: Choice[];
  usage?: Usage | null;
  speculation?: Speculation;
  metrics?: { speculative_decoding?: SpeculationMetrics };
  error?: { message: string; param?: string | null };
}

interface Choice {
  text?: string;
  delta?: { content?: string | null; reasoning_content?: string | null };
  tokens?: Token[];
  round?: Round;
  logprobs?: Logprobs | null;
  finish_reason?: string | null;
}

interface Usage {
  completion_tokens?: number;
  prompt_tokens_details?: { cached_tokens?: number } | null;
}

/** Log probabilities: a list of tokens in chats, lists side by side in completions. */
interface Logprobs {
  content?: {
    token: string;
    logprob: number;
    top_logprobs?: { token: string; logprob: number }[];
  }[];
  tokens?: string[];
  token_logprobs?: (number | null)[];
  top_logprobs?: (Record<string, number> | null)[];
}

/** Returns the run with what `pieces`, which came at `now`, bring. */
export function joined(run: Run, pieces: readonly Piece[], now: number): Run {
  const next = { ...run };
  for (const piece of pieces) join(next, piece, now);
  return next;
}

function join(run: Run, piece: Piece, now: number): void {
  if (piece.error) {
    run.phase = "failed";
    run.failure = { message: piece.error.message, param: piece.error.param ?? null, status: null };
    return;
  }
  const choice = piece.choices?.[0];
  if (choice) joinChoice(run, choice, now);
  if (piece.usage) {
    run.completionTokens = piece.usage.completion_tokens ?? null;
    run.cachedTokens = piece.usage.prompt_tokens_details?.cached_tokens ?? null;
  }
  if (piece.speculation) run.speculation = piece.speculation;
  if (piece.metrics?.speculative_decoding) run.metrics = piece.metrics.speculative_decoding;
}

function joinChoice(run: Run, choice: Choice, now: number): void {
  const text = choice.text ?? choice.delta?.content ?? "";
  const reasoning = choice.delta?.reasoning_content ?? "";
  const tokens = choice.tokens ?? [];
  if (text !== "" || reasoning !== "" || tokens.length > 0) {
    run.phase = "streaming";
    if (run.firstAt === null) {
      run.firstAt = now;
      run.firstTokens = tokens.length;
    }
    run.latestAt = now;
  }
  run.text += text;
  run.reasoning += reasoning;
  for (const token of tokens) run.tokens.push(token);
  if (choice.round) run.rounds.push(choice.round);
  for (const each of logProbabilities(choice.logprobs)) run.logprobs.push(each);
  if (choice.finish_reason) run.finish = choice.finish_reason;
}

function logProbabilities(logprobs: Logprobs | null | undefined): LogProbability[] {
  if (!logprobs) return [];
  if (logprobs.content) {
    return logprobs.content.map(({ logprob, top_logprobs = [] }) => ({
      logprob,
      alternatives: top_logprobs.map(({ token, logprob }) => ({ text: token, logprob })),
    }));
  }
  return (logprobs.token_logprobs ?? []).map((logprob, at) => ({
    logprob: logprob ?? 0,
    alternatives: Object.entries(logprobs.top_logprobs?.[at] ?? {})
      .map(([text, logprob]) => ({ text, logprob }))
      .sort((one, other) => other.logprob - one.logprob),
  }));
}
