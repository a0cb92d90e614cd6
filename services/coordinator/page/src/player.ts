/** Plays the rounds of a run again, in the time that they took or slower. */

import { roundUs } from "./lanes.ts";
import type { Run } from "./run.ts";
import type { Replay, State } from "./state.ts";
import type { Store } from "./store.ts";
import type { Played, Playing } from "./timeline.ts";

/** Without a choice of the user a run is played in at least this time, if it was not as slow itself. */
const LEAST_PLAY_US = 3e6;

export class Player implements Playing {
  readonly #store: Store<State>;

  constructor(store: Store<State>) {
    this.#store = store;
  }

  /** Shows a run up to a round; at its last it is shown as it is. */
  scrub(run: Run, rounds: number): void {
    const isWhole = rounds >= run.rounds.length;
    this.#store.update(() => ({
      replay: isWhole ? null : { run: run.id, rounds, playing: false },
    }));
  }

  toggle(run: Run): void {
    const { replay } = this.#store.state;
    if (replay?.run === run.id && replay.playing) {
      this.#store.update(() => ({ replay: { ...replay, playing: false } }));
      return;
    }
    const rounds = replay?.run === run.id ? replay.rounds : 0;
    this.#play(run, { run: run.id, rounds, playing: true });
  }

  slower(slower: number): void {
    this.#store.update(({ options }) => ({ options: { ...options, slower } }));
  }

  /** Plays until the end, or until somebody else changes what is played. */
  #play(run: Run, begin: Replay): void {
    let current = begin;
    let playedUs = 0;
    let before = performance.now();
    this.#store.update(() => ({ replay: current }));
    const step = (now: number): void => {
      const { replay, options } = this.#store.state;
      if (replay !== current) return;
      playedUs += ((now - before) * 1000) / slowness(run, options.slower);
      before = now;
      let { rounds } = current;
      for (const round of run.rounds.slice(rounds)) {
        if (roundUs(round) > playedUs) break;
        playedUs -= roundUs(round);
        rounds += 1;
      }
      const isOver = rounds >= run.rounds.length;
      if (rounds > current.rounds) {
        current = { ...current, rounds };
        this.#store.update(() => ({ replay: isOver ? null : current }));
      }
      if (!isOver) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }
}

/** Returns what is played of a run, for its view. */
export function playedOf(state: Readonly<State>, run: Run): Played {
  const replay = state.replay?.run === run.id ? state.replay : null;
  const slower = slowness(run, state.options.slower);
  return { rounds: replay?.rounds ?? null, playing: replay?.playing ?? false, slower };
}

function slowness(run: Run, chosen: number | null): number {
  if (chosen !== null) return chosen;
  const whole = run.rounds.reduce((sum, round) => sum + roundUs(round), 0);
  let slower = 1;
  while (whole > 0 && whole * slower < LEAST_PLAY_US && slower < 1000) slower *= 10;
  return slower;
}
