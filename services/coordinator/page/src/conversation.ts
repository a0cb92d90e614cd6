/** The turns of a conversation, the newest at the end. */

import type { Card } from "./card.ts";
import { el, setText } from "./dom.ts";
import type { State, Turn } from "./state.ts";
import type { Store } from "./store.ts";
import { t } from "./texts.ts";
import { isBusy, runsOf, type TurnActions, TurnView } from "./turn.ts";

/** How near the end counts as at the end. */
const NEAR_PX = 48;
/** After the last change of an answer its timeline may still unfold. */
const SETTLES_MS = 500;

export class ConversationView {
  readonly #empty = el("p", { class: "empty" });
  readonly #turns = el("div", { class: "turns" });
  readonly root: HTMLElement;
  readonly #views = new Map<number, Shown>();
  readonly #card: Card;
  readonly #actions: TurnActions;
  /** Whether the end is kept in sight while text comes, and until when. */
  #follows = true;
  #followsUntil = 0;

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
    // When the observer tells, layout is done, so that scrolling asks for none of its own.
    new ResizeObserver(() => {
      const isDue = this.#follows && performance.now() < this.#followsUntil;
      if (isDue) this.root.scrollTop = this.root.scrollHeight;
    }).observe(this.#turns);
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
    if (busy) this.#followsUntil = performance.now() + SETTLES_MS;
    for (const turn of turns) this.#showTurn(turn, state, busy);
    this.#turns.classList.toggle(
      "wide",
      turns.some((turn) => turn.runs.length > 1),
    );
  }

  #dropOthers(kept: Set<number>): void {
    for (const [id, { view }] of this.#views) {
      if (kept.has(id)) continue;
      view.root.remove();
      this.#views.delete(id);
    }
  }

  /** Shows a turn, if anything that it depends on changed. */
  #showTurn(turn: Turn, state: Readonly<State>, busy: boolean): void {
    const depends = dependencies(turn, state, busy);
    const shown = this.#views.get(turn.id);
    if (shown && same(shown.depends, depends)) return;
    const view = shown?.view ?? this.#addTurn();
    view.show(turn, state, busy);
    this.#views.set(turn.id, { view, depends });
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
