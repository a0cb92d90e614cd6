/** The text of an answer as its tokens, which can be coloured, visited and cut off at a round. */

import type { Card } from "./card.ts";
import { el } from "./dom.ts";
import { type Run, roundOf, type Token } from "./run.ts";
import { number, t } from "./texts.ts";
import { visibleToken } from "./visible.ts";

/**
 * Browsers lay a block out anew as a whole. So each line is a block of its own, and one of more tokens than
 * this is broken.
 */
const LONGEST_LINE = 600;
/** A token longer than any vocabulary's is shown by its beginning. */
const LONGEST_TOKEN = 2000;

export class TokensView {
  readonly root: HTMLElement;
  readonly #card: Card;
  readonly #spans: HTMLElement[] = [];
  readonly #positions = new WeakMap<Element, number>();
  #run: Run | null = null;
  #line: HTMLElement | null = null;
  #lineTokens = 0;
  #current = 0;
  #shown = Number.POSITIVE_INFINITY;
  #difference: HTMLElement | null = null;

  constructor(card: Card) {
    this.#card = card;
    this.root = el("div", {
      class: "tokens",
      role: "group",
      "aria-label": t("tokensHelp"),
      onpointerover: (event: Event) => this.#hover(event),
      onpointerleave: () => card.hide(),
      onfocusin: (event: Event) => this.#hover(event),
      onfocusout: () => card.hide(),
      onclick: (event: Event) => this.#visit(this.#at(event)),
      onkeydown: (event: Event) => this.#onKey(event as KeyboardEvent),
    });
  }

  /** Shows the first `shown` tokens of `run`, which is the one shown before, grown. */
  show(run: Run, shown: number, difference: number | null): void {
    this.#run = run;
    this.#append(run.tokens, this.#spans.length);
    this.#cut(shown);
    this.#mark(difference);
  }

  #append(tokens: readonly Token[], from: number): void {
    for (let position = from; position < tokens.length; position += 1) {
      const token = tokens[position] as Token;
      const span = el("span", { class: `token ${token.origin}` }, textOf(token));
      if (position === 0) span.tabIndex = 0;
      if (position >= this.#shown) span.classList.add("later");
      this.#spans.push(span);
      this.#positions.set(span, position);
      this.#openLine().append(span);
      this.#lineTokens += 1;
      if (token.text.endsWith("\n") || this.#lineTokens >= LONGEST_LINE) this.#line = null;
    }
  }

  #openLine(): HTMLElement {
    if (!this.#line) {
      this.#line = this.root.appendChild(el("div", { class: "line", dir: "auto" }));
      this.#lineTokens = 0;
    }
    return this.#line;
  }

  /** Hides what comes after the first `shown`. Hidden tokens keep their place, so that nothing moves. */
  #cut(shown: number): void {
    const count = this.#spans.length;
    const [before, now] = [Math.min(this.#shown, count), Math.min(shown, count)];
    for (let at = Math.min(before, now); at < Math.max(before, now); at += 1) {
      this.#spans[at]?.classList.toggle("later", at >= now);
    }
    this.#shown = shown;
  }

  #mark(difference: number | null): void {
    const span = difference === null ? null : (this.#spans[difference] ?? null);
    if (span === this.#difference) return;
    this.#difference?.classList.remove("differs");
    span?.classList.add("differs");
    this.#difference = span;
  }

  #hover(event: Event): void {
    const position = this.#at(event);
    const span = this.#spans[position];
    if (this.#run && span) this.#card.show(this.#run, position, span);
  }

  /** Returns the position of the token that an event is about, -1 if it is about none. */
  #at(event: Event): number {
    const span = (event.target as Element).closest(".token");
    return (span && this.#positions.get(span)) ?? -1;
  }

  /** Focuses a token. Only the one visited last is a tab stop. */
  #visit(position: number): void {
    const span = this.#spans[position];
    if (!span || position >= this.#shown) return;
    const before = this.#spans[this.#current];
    before?.removeAttribute("tabindex");
    before?.removeAttribute("aria-describedby");
    this.#current = position;
    span.tabIndex = 0;
    span.setAttribute("aria-describedby", this.#card.root.id);
    span.focus();
  }

  #onKey(event: KeyboardEvent): void {
    const target = this.#target(event.key);
    if (event.key === "Escape") this.#card.hide();
    if (target === null) return;
    event.preventDefault();
    this.#visit(Math.max(0, Math.min(target, this.#spans.length - 1, this.#shown - 1)));
  }

  #target(key: string): number | null {
    const current = this.#current;
    const rounds = this.#run?.rounds ?? [];
    const round = roundOf(rounds, current);
    if (key === "ArrowRight") return current + 1;
    if (key === "ArrowLeft") return current - 1;
    if (key === "ArrowDown") return round ? round.base_len + round.emitted : current + 1;
    if (key === "ArrowUp")
      return round ? (roundOf(rounds, round.base_len - 1)?.base_len ?? 0) : current - 1;
    if (key === "Home") return 0;
    return key === "End" ? this.#spans.length - 1 : null;
  }
}

function textOf({ text }: Token): string {
  if (text.length <= LONGEST_TOKEN) return visibleToken(text);
  const count = number(text.length);
  return visibleToken(text.slice(0, LONGEST_TOKEN)) + t("longToken", { count });
}
