/** One turn: what the user wrote, and the answers to it. */

import { type AnswerActions, type AnswerContext, AnswerView } from "./answer.ts";
import type { Card } from "./card.ts";
import { type Comparison, compared } from "./differences.ts";
import { button, el, setText } from "./dom.ts";
import { PlainText } from "./plain.ts";
import { playedOf } from "./player.ts";
import { isUnderWay, type Run, tokensAfter } from "./run.ts";
import type { State, Turn } from "./state.ts";
import { number, t } from "./texts.ts";
import { withoutControls } from "./visible.ts";

/** What the user can do with a turn. */
export interface TurnActions extends Omit<AnswerActions, "retry"> {
  retry(turn: Turn): void;
  startEdit(turn: Turn | null): void;
  edit(turn: Turn, text: string): void;
}

export class TurnView {
  readonly #actions: TurnActions;
  readonly #card: Card;
  readonly #said = new PlainText();
  readonly #files = el("div", { class: "files" });
  readonly #edit: HTMLButtonElement;
  readonly #editor: HTMLFormElement;
  readonly #field = el("textarea", { "aria-label": t("editText"), rows: 3 });
  readonly #user: HTMLElement;
  readonly #answers = el("div", { class: "answers" });
  readonly #verdict = el("p", { class: "verdict", role: "status", hidden: true });
  readonly root: HTMLElement;
  #views: AnswerView[] = [];
  #turn: Turn | null = null;
  #isEditing = false;

  constructor(card: Card, actions: TurnActions) {
    this.#card = card;
    this.#actions = actions;
    this.#edit = button(t("edit"), () => actions.startEdit(this.#turn), { class: "quiet" });
    const cancel = button(t("cancel"), () => actions.startEdit(null));
    const save = el("button", { type: "submit", class: "primary" }, t("saveEdit"));
    this.#editor = el("form", { class: "editor" }, this.#field, el("div", {}, cancel, save));
    this.#editor.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#turn) actions.edit(this.#turn, this.#field.value);
    });
    this.#editor.addEventListener("keydown", (event) => {
      if (event.key === "Escape") actions.startEdit(null);
    });
    const name = el("h2", { class: "hidden" }, t("you"));
    const parts = [name, this.#said.root, this.#files, this.#editor, this.#edit];
    this.#user = el("div", { class: "user" }, ...parts);
    this.root = el("article", { class: "turn" }, this.#user, this.#answers, this.#verdict);
  }

  show(turn: Turn, state: Readonly<State>, busy: boolean): void {
    this.#showSaid(turn);
    this.#showEditor(state.editing === turn.id, busy);
    const runs = runsOf(turn, state);
    while (this.#views.length > runs.length) this.#views.pop()?.root.remove();
    const comparison = comparisonOf(runs);
    for (const [pane, run] of runs.entries()) {
      this.#answerView(pane).show(run, contextOf(run, pane, runs, comparison, state, busy));
    }
    this.#answers.classList.toggle("beside", runs.length > 1);
    this.#showVerdict(comparison, state.mode === "chat");
  }

  fold(): void {
    for (const view of this.#views) view.fold();
  }

  #answerView(pane: number): AnswerView {
    const actions = this.#actions;
    let view = this.#views[pane];
    if (!view) {
      view = new AnswerView(this.#card, {
        ...actions,
        retry: () => this.#turn && actions.retry(this.#turn),
      });
      this.#views.push(view);
      this.#answers.append(view.root);
    }
    return view;
  }

  #showSaid(turn: Turn): void {
    if (turn === this.#turn) return;
    this.#turn = turn;
    this.#said.show(withoutControls(turn.text));
    this.#files.replaceChildren(
      ...turn.files.map(({ name, text }) => {
        const attached = t("attached", { name, size: number(text.length) });
        const content = new PlainText();
        content.show(withoutControls(text));
        return el("details", {}, el("summary", {}, attached), content.root);
      }),
    );
  }

  #showEditor(isEditing: boolean, busy: boolean): void {
    this.#edit.disabled = busy;
    this.#editor.hidden = !isEditing;
    this.#edit.hidden = isEditing;
    this.#said.root.hidden = isEditing;
    if (isEditing && !this.#isEditing) {
      this.#field.value = this.#turn?.text ?? "";
      this.#field.focus();
    }
    // The focus goes back where it came from, else keyboards begin at the top again.
    if (!isEditing && this.#isEditing) this.#edit.focus();
    this.#isEditing = isEditing;
  }

  #showVerdict(comparison: Comparison | null, isChat: boolean): void {
    const verdict = comparison ? verdictOf(comparison) : "";
    this.#verdict.hidden = verdict === "";
    setText(
      this.#verdict,
      isChat && verdict !== "" ? `${verdict} ${t("continuesFirst")}` : verdict,
    );
  }
}

/** Returns the runs that answer a turn. */
export function runsOf(turn: Turn, state: Readonly<State>): Run[] {
  return turn.runs.flatMap((id) => state.runs[id] ?? []);
}

/** Whether anything is under way. */
export function isBusy(state: Readonly<State>): boolean {
  return Object.values(state.runs).some(isUnderWay);
}

function comparisonOf([one, other]: Run[]): Comparison | null {
  return one && other ? compared(one, other) : null;
}

function contextOf(
  run: Run,
  pane: number,
  runs: Run[],
  comparison: Comparison | null,
  state: Readonly<State>,
  busy: boolean,
): AnswerContext {
  const played = playedOf(state, run);
  const shown = played.rounds === null ? null : tokensAfter(run.rounds, played.rounds);
  const beside = runs.length > 1;
  const difference = comparison?.is === "different" ? comparison.at : null;
  return {
    look: { coloured: state.options.coloured, beside, shown, difference },
    played,
    alone: state.runs[state.baselines[run.id] ?? -1] ?? null,
    busy,
    pinnedSeed: state.sampling.seed,
    name: beside ? t("answerOf", { pane: "AB"[pane] ?? "" }) : t("answer"),
  };
}

function verdictOf(comparison: Comparison): string {
  if (comparison.is === "identical") return t("sameText");
  if (comparison.is === "unknown") return "";
  return comparison.at === null ? t("otherText") : t("differAt", { position: comparison.at + 1 });
}
