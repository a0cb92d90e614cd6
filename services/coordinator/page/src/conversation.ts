/** The turns of a conversation, the newest at the end. */

import type { Card } from "./card.ts";
import { el, setText } from "./dom.ts";
import type { State, Turn } from "./state.ts";
import type { Store } from "./store.ts";
import { t } from "./texts.ts";
import { isBusy, runsOf, type TurnActions, TurnView } from "./turn.ts";

/** How near the end counts as at the end. */
const NEAR_PX = 48;

export class ConversationView {
  readonly #empty = el("p", { class: "empty" });
  readonly #turns = el("div", { class: "turns" });
  readonly root: HTMLElement;
  readonly #views = new Map<number, Shown>();
  readonly #card: Card;
  readonly #actions: TurnActions;
  #follows = true;

  constructor(store: Store<State>, card: Card, actions: TurnActions) {
    this.#card = card;
    this.#actions = actions;
    this.root = el(
      "section",
      { class: "conversation", "aria-label": t("conversation"), tabindex: 0 },
      this.#empty,
      this.#turns,
    );
    this.root.addEventListener("scroll", () => {
      const { scrollHeight, scrollTop, clientHeight } = this.root;
      this.#follows = scrollHeight - scrollTop - clientHeight < NEAR_PX;
      card.hide();
    });
    store.watch(
      (state) => state,
      (state) => this.#show(state),
    );
  }

  #show(state: Readonly<State>): void {
    const turns = state.turns[state.mode];
    const busy = isBusy(state);
    this.#empty.hidden = turns.length > 0;
    setText(this.#empty, state.mode === "chat" ? t("emptyChat") : t("emptyComplete"));
    this.#dropOthers(new Set(turns.map((turn) => turn.id)));
    let changed = false;
    for (const turn of turns) changed = this.#showTurn(turn, state, busy) || changed;
    if (changed && busy && this.#follows) this.root.scrollTop = this.root.scrollHeight;
  }

  #dropOthers(kept: Set<number>): void {
    for (const [id, { view }] of this.#views) {
      if (kept.has(id)) continue;
      view.root.remove();
      this.#views.delete(id);
    }
  }

  /** Shows a turn, if anything that it depends on changed. Returns whether. */
  #showTurn(turn: Turn, state: Readonly<State>, busy: boolean): boolean {
    const depends = dependencies(turn, state, busy);
    const shown = this.#views.get(turn.id);
    if (shown && same(shown.depends, depends)) return false;
    const view = shown?.view ?? this.#addTurn();
    view.show(turn, state, busy);
    this.#views.set(turn.id, { view, depends });
    return true;
  }

  #addTurn(): TurnView {
    for (const { view } of this.#views.values()) view.fold();
    const view = new TurnView(this.#card, this.#actions);
    this.#turns.append(view.root);
    this.#follows = true;
    return view;
  }
}

interface Shown {
  view: TurnView;
  depends: unknown[];
}

function dependencies(turn: Turn, state: Readonly<State>, busy: boolean): unknown[] {
  const runs = runsOf(turn, state);
  const alone = runs.map((run) => state.runs[state.baselines[run.id] ?? -1]);
  const replay = runs.some((run) => run.id === state.replay?.run) ? state.replay : null;
  const isEdited = state.editing === turn.id;
  return [turn, busy, state.options, state.sampling.seed, replay, isEdited, ...runs, ...alone];
}

function same(one: unknown[], other: unknown[]): boolean {
  return one.length === other.length && one.every((each, at) => Object.is(each, other[at]));
}
