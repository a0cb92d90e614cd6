/** One answer: its text, what is to be said about it, its timeline and numbers. */

import { BaselineView } from "./baseline.ts";
import type { Card } from "./card.ts";
import { button, el, setText } from "./dom.ts";
import { NumbersView } from "./numbers.ts";
import { type Look, OutputView } from "./output.ts";
import { PositionsView } from "./positions.ts";
import { fallbackReasons, isUnderWay, type Run, tokenCount } from "./run.ts";
import { promises, t } from "./texts.ts";
import { type Played, type Playing, TimelineView } from "./timeline.ts";

const UNFOLDS_AFTER_MS = 250;

/** What the user can do with an answer. */
export interface AnswerActions extends Playing {
  retry(): void;
  measure(run: Run): void;
  pin(seed: number): void;
}

/** What is known beside the run itself. */
export interface AnswerContext {
  look: Look;
  played: Played;
  alone: Run | null;
  /** Whether anything is under way. */
  busy: boolean;
  pinnedSeed: string;
  /** What the answer is called. */
  name: string;
}

export class AnswerView {
  readonly #output: OutputView;
  readonly #name = el("h3");
  readonly #badges = el("p", { class: "badges" });
  readonly #status = el("p", { class: "status", role: "status" });
  readonly #fallback = el("p", { class: "notice", role: "status", hidden: true });
  readonly #error = el("p", { class: "error", role: "alert", hidden: true });
  readonly #numbers = new NumbersView();
  readonly #timeline: TimelineView;
  readonly #positions = new PositionsView();
  readonly #baseline: BaselineView;
  readonly #settings = el("p", { class: "help settings" });
  readonly #copy: HTMLButtonElement;
  readonly #retry: HTMLButtonElement;
  readonly #pin: HTMLButtonElement;
  readonly #seed = el("span", { class: "seed" });
  readonly #actions: HTMLElement;
  readonly #details: HTMLDetailsElement;
  readonly root: HTMLElement;
  #run: Run | null = null;
  #context: AnswerContext | null = null;

  constructor(card: Card, actions: AnswerActions) {
    this.#output = new OutputView(card);
    this.#timeline = new TimelineView(actions);
    this.#baseline = new BaselineView(actions.measure);
    this.#copy = button(t("copy"), () => void this.#copyText());
    this.#retry = button(t("retry"), actions.retry);
    this.#pin = button(t("pin"), () => {
      const seed = this.#run?.speculation?.seed;
      if (seed !== undefined) actions.pin(seed);
    });
    this.#actions = el("div", { class: "actions" }, this.#copy, this.#retry, this.#seed, this.#pin);
    this.#details = el(
      "details",
      { class: "inspection", open: true, ontoggle: () => this.#showDetails() },
      el("summary", {}, t("details")),
      this.#timeline.root,
      el("div", { class: "charts" }, this.#positions.root, this.#baseline.root),
      this.#settings,
    );
    const head = el("header", {}, this.#name, this.#badges);
    const parts = [
      head,
      this.#output.root,
      this.#status,
      this.#fallback,
      this.#error,
      this.#actions,
    ];
    this.root = el("section", { class: "answer" }, ...parts, this.#numbers.root, this.#details);
  }

  show(run: Run, context: AnswerContext): void {
    this.#run = run;
    this.#context = context;
    setText(this.#name, context.name);
    this.#output.show(run, context.look);
    setText(this.#status, statusOf(run));
    this.#showFailure(run);
    this.#showBadges(run);
    this.#showActions(run, context);
    this.#numbers.show(run);
    this.#numbers.root.hidden = run.firstAt === null;
    this.#details.hidden = isTooEarly(run);
    this.#showDetails();
  }

  /** Closes what makes earlier answers long. */
  fold(): void {
    this.#details.open = false;
  }

  #showDetails(): void {
    const [run, context] = [this.#run, this.#context];
    if (!run || !context || !this.#details.open) return;
    this.#timeline.show(run, context.played);
    if (!isUnderWay(run)) this.#positions.show(run);
    this.#positions.root.hidden ||= isUnderWay(run);
    this.#baseline.show(run, context.alone, context.busy);
    const inEffect = Object.entries(run.speculation?.settings ?? {});
    const settings = inEffect.map(([name, value]) => `${name} ${value}`).join(", ");
    setText(this.#settings, settings === "" ? "" : t("inEffect", { settings }));
  }

  #showFailure(run: Run): void {
    const { failure } = run;
    const reasons = fallbackReasons(run);
    this.#fallback.hidden = reasons.length === 0;
    setText(this.#fallback, t("withoutDrafter", { reason: reasons.join("; ") }));

    this.#error.hidden = failure === null;
    if (failure) setText(this.#error, failureText(failure));
  }

  #showBadges({ speculation }: Run): void {
    const badges = speculation ? [speculation.method, ...promises(speculation)] : [];
    setText(this.#badges, badges.join(" · "));
  }

  #showActions(run: Run, { busy, pinnedSeed }: AnswerContext): void {
    this.#actions.hidden = isUnderWay(run);
    this.#copy.hidden = run.text === "";
    this.#retry.disabled = busy;
    const seed = run.speculation?.seed;
    this.#seed.hidden = seed === undefined;
    this.#pin.hidden = seed === undefined;
    if (seed === undefined) return;
    const isPinned = pinnedSeed === String(seed);
    setText(this.#seed, t("seedUsed", { seed }));
    setText(this.#pin, isPinned ? t("pinned") : t("pin"));
    this.#pin.title = t("pinSeed", { seed });
    this.#pin.setAttribute("aria-pressed", String(isPinned));
  }

  async #copyText(): Promise<void> {
    if (!this.#run) return;
    await copy(this.#run.text);
    setText(this.#copy, t("copied"));
    window.setTimeout(() => setText(this.#copy, t("copy")), 1500);
  }
}

/** Whether the timeline would unfold in the very frames in which the first text is laid out. */
function isTooEarly({ firstAt, latestAt, phase }: Run): boolean {
  if (firstAt === null || latestAt === null) return true;
  return phase === "streaming" && latestAt - firstAt < UNFOLDS_AFTER_MS;
}

/** Returns a failure's text, with the field that it is about where its message does not begin with that. */
export function failureText({ message, param }: { message: string; param: string | null }): string {
  if (!param || message.startsWith(param)) return message;
  return t("failedField", { field: param, message });
}

function statusOf(run: Run): string {
  if (run.phase === "waiting") return run.queued ? t("queued") : t("waiting");
  const said: string[] = [];
  if (run.phase === "stopped") said.push(t("stopped"));
  if (run.finish === "length") said.push(t("cut", { count: tokenCount(run) }));
  if (run.phase === "done" && run.text === "" && run.reasoning === "") said.push(t("emptyAnswer"));
  return said.join(" ");
}

/** Copies a text. A page that came in clear from another machine, or may not, copies a selection instead. */
async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = el("textarea", { "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}
