/** What is computed from a run's tokens and rounds. A figure that cannot be told is null. */

import { isUnderWay, type Round, type Run, tokenCount } from "./run.ts";

/** Returns milliseconds from sending to the first text. */
export function firstTokenMs(run: Run): number | null {
  return run.firstAt === null ? null : run.firstAt - run.sentAt;
}

/**
 * Returns tokens a second since the first text. Where all came at once there is nothing to divide by, and
 * the time since sending stands in.
 */
export function tokensPerSecond(run: Run): number | null {
  if (run.firstAt === null || run.latestAt === null) return null;
  const count = tokenCount(run);
  const later = count - run.firstTokens;
  const since = run.latestAt - run.firstAt;
  if (later > 0 && since > 0) return (later / since) * 1000;
  const whole = run.latestAt - run.sentAt;
  return isUnderWay(run) || whole <= 0 ? null : (count / whole) * 1000;
}

/** Returns the share of draft tokens that were accepted. */
export function acceptanceRate(rounds: readonly Round[]): number | null {
  const drafted = sum(rounds, (round) => round.drafted);
  return drafted === 0 ? null : sum(rounds, (round) => round.accepted) / drafted;
}

export function tokensPerRound(rounds: readonly Round[]): number | null {
  return rounds.length === 0 ? null : sum(rounds, (round) => round.emitted) / rounds.length;
}

/** Returns the bytes that peers and coordinator exchanged for each token that rounds brought. */
export function bytesPerToken(rounds: readonly Round[]): number | null {
  const emitted = sum(rounds, (round) => round.emitted);
  return emitted === 0 ? null : sum(rounds, (round) => round.wire_bytes) / emitted;
}

/** How many rounds drafted a token at a position, and how many accepted it. */
export interface AtPosition {
  drafted: number;
  accepted: number;
}

/** Returns for each position of a draft, from its first, how its tokens fared. */
export function byPosition(rounds: readonly Round[]): AtPosition[] {
  const positions: AtPosition[] = [];
  for (const { drafted, accepted } of rounds) {
    for (let at = 0; at < drafted; at += 1) {
      positions[at] ??= { drafted: 0, accepted: 0 };
      const position = positions[at] as AtPosition;
      position.drafted += 1;
      if (at < accepted) position.accepted += 1;
    }
  }
  return positions;
}

function sum(rounds: readonly Round[], of: (round: Round) => number): number {
  return rounds.reduce((total, round) => total + of(round), 0);
}
