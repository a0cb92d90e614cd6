/**
 * The one place where the page's state lives. Data flows one way: events call `update`, and views that
 * watch a part of the state are told once a frame, however often that part changed in between.
 */
export class Store<State extends object> {
  #state: State;
  #watchers: Watcher<State>[] = [];
  #pending = false;
  readonly #schedule: (run: () => void) => void;

  /** `schedule` says when views are told; the page passes `requestAnimationFrame`. */
  constructor(state: State, schedule: (run: () => void) => void) {
    this.#state = state;
    this.#schedule = schedule;
  }

  get state(): Readonly<State> {
    return this.#state;
  }

  /** Replaces parts of the state. What did not change keeps its identity, by which views tell. */
  update(change: (state: Readonly<State>) => Partial<State>): void {
    this.#state = { ...this.#state, ...change(this.#state) };
    if (this.#pending) return;
    this.#pending = true;
    this.#schedule(() => this.flush());
  }

  /** Calls `view` now, and in the frame after each change of what `select` returns. */
  watch<Part>(select: (state: Readonly<State>) => Part, view: (part: Part) => void): void {
    let seen = select(this.#state);
    this.#watchers.push((state) => {
      const part = select(state);
      if (Object.is(part, seen)) return;
      seen = part;
      view(part);
    });
    view(seen);
  }

  /** Tells the views of what changed, without waiting for the frame. */
  flush(): void {
    this.#pending = false;
    for (const watcher of this.#watchers) watcher(this.#state);
  }
}

type Watcher<State> = (state: Readonly<State>) => void;
