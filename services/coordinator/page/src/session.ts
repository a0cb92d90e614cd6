/** What the user can do: each action updates the store, and sends what is to be sent. */

import { type Api, failureOf } from "./api.ts";
import { joined, type Piece } from "./pieces.ts";
import { bodyOf, checkSeed, drawnSeed, pathOf, targetAlone, typedSeed } from "./requests.ts";
import { isUnderWay, newRun, type Run } from "./run.ts";
import type { State, TextFile, Turn } from "./state.ts";
import type { Store } from "./store.ts";

export class Session {
  readonly #store: Store<State>;
  readonly #api: Api;
  /** Stops everything that is under way. */
  #abort = new AbortController();
  #lastTurn = 0;

  constructor(store: Store<State>, api: Api) {
    this.#store = store;
    this.#api = api;
  }

  /** Adds a turn to the conversation, and answers it. */
  send(text: string, files: TextFile[]): void {
    const turn = { id: this.nextTurn(), text, files, runs: [] };
    this.#store.update(({ turns, mode }) => ({
      turns: { ...turns, [mode]: [...turns[mode], turn] },
    }));
    void this.#answer(turn);
  }

  /** Replaces what a turn says, cuts what follows it in a chat, and answers it anew. */
  edit(turn: Turn, text: string): void {
    const { mode, turns } = this.#store.state;
    const edited = { ...turn, text, runs: [] };
    const all = turns[mode];
    const at = all.indexOf(turn);
    const after = mode === "chat" ? [] : all.slice(at + 1);
    const list = [...all.slice(0, at), edited, ...after];
    this.#store.update(() => ({ turns: { ...turns, [mode]: list }, editing: null }));
    void this.#answer(edited);
  }

  /** Answers a turn anew. */
  retry(turn: Turn): void {
    this.edit(turn, turn.text);
  }

  /** Stops what is under way, and keeps what came. */
  stop(): void {
    this.#abort.abort();
  }

  /** Sends the request of `run` once more for the target alone, with the seed that it used. */
  async measureAlone(run: Run): Promise<void> {
    const seed = run.speculation?.seed;
    if (seed === undefined) return;
    const alone = this.#begin(run.path, targetAlone(run.body, seed));
    this.#store.update(({ baselines }) => ({ baselines: { ...baselines, [run.id]: alone.id } }));
    await this.#receive(alone);
  }

  /** Forgets a conversation. */
  clear(): void {
    this.stop();
    this.#store.update(({ mode, turns }) => ({
      turns: { ...turns, [mode]: [] },
      replay: null,
      editing: null,
    }));
    this.#forget();
  }

  /** Drops runs that no turn has any longer: a long answer with its tokens takes megabytes. */
  #forget(): void {
    this.#store.update(({ runs, turns, baselines }) => {
      const answers = Object.values(turns).flatMap((list) => list.flatMap((turn) => turn.runs));
      const kept = new Set(answers.flatMap((id) => [id, baselines[id] ?? id]));
      const entries = Object.entries(runs);
      return {
        runs: Object.fromEntries(
          entries.filter(([id, run]) => kept.has(Number(id)) || isUnderWay(run)),
        ),
      };
    });
  }

  nextTurn(): number {
    this.#lastTurn += 1;
    return this.#lastTurn;
  }

  async #answer(turn: Turn): Promise<void> {
    const { state } = this.#store;
    const { mode, options } = state;
    const typed = typedSeed(state.sampling);
    const seed = options.sideBySide ? (typed ?? drawnSeed()) : typed;
    const panes = options.sideBySide ? [0, 1] : [0];
    const runs = panes.map((pane) => this.#begin(pathOf(mode), bodyOf(state, turn, pane, seed)));
    const answered = { ...turn, runs: runs.map((run) => run.id) };
    this.#store.update(({ turns }) => ({
      turns: { ...turns, [mode]: turns[mode].map((each) => (each === turn ? answered : each)) },
      replay: null,
    }));
    this.#forget();
    if (options.atOnce) await Promise.all(runs.map((run) => this.#receive(run)));
    else for (const run of runs) await this.#receive(run);
  }

  /** Puts a run into the store. */
  #begin(path: string, body: Record<string, unknown>): Run {
    const nothingElse = !Object.values(this.#store.state.runs).some(isUnderWay);
    if (nothingElse) this.#abort = new AbortController();
    const run = newRun(path, body, performance.now());
    this.#put(run);
    return run;
  }

  /** Sends a run, and joins to it what comes. */
  async #receive(begun: Run): Promise<void> {
    const { signal } = this.#abort;
    let run: Run = { ...begun, queued: false, sentAt: performance.now() };
    this.#put(run);
    try {
      signal.throwIfAborted();
      checkSeed(run.body);
      for await (const pieces of this.#api.stream(run.path, run.body, signal)) {
        run = this.#join(run, pieces);
        if (run.phase === "failed") return;
      }
      this.#put({ ...run, phase: "done" });
    } catch (error) {
      const end: Partial<Run> = signal.aborted
        ? { phase: "stopped" }
        : { phase: "failed", failure: failureOf(error) };
      this.#put({ ...run, ...end });
    }
  }

  #join(run: Run, pieces: Piece[]): Run {
    const next = joined(run, pieces, performance.now());
    this.#put(next);
    return next;
  }

  #put(run: Run): void {
    this.#store.update(({ runs }) => ({ runs: { ...runs, [run.id]: run } }));
  }
}
