/** The text of an answer: as Markdown, or as its tokens. */

import type { Card } from "./card.ts";
import { el, setText } from "./dom.ts";
import { MarkdownView } from "./markdown.ts";
import { isUnderWay, type Run } from "./run.ts";
import { t } from "./texts.ts";
import { TokensView } from "./tokens.ts";

/** How it is shown. */
export interface Look {
  /** Whether tokens are coloured by origin. */
  coloured: boolean;
  /** Whether it stands beside another, and so is shown as tokens, in which a difference can be marked. */
  beside: boolean;
  /** How many tokens are shown; null is all. */
  shown: number | null;
  /** The token that differs first from the other's. */
  difference: number | null;
}

export class OutputView {
  readonly #text = el("div", { class: "output" });
  readonly #reasoning = el("p", { class: "plain" });
  readonly #thought = el("details", { class: "reasoning", hidden: true });
  readonly root = el("div", {}, this.#thought, this.#text);
  readonly #card: Card;
  #tokens: TokensView | null = null;
  #markdown: MarkdownView | null = null;
  #run = 0;

  constructor(card: Card) {
    this.#card = card;
    this.#thought.append(el("summary", {}, t("reasoning")), this.#reasoning);
  }

  show(run: Run, look: Look): void {
    const isNew = run.id !== this.#run;
    this.#run = run.id;
    if (run.reasoning !== "") setText(this.#reasoning, run.reasoning);
    // Only what still grows is read out as it comes.
    if (isUnderWay(run)) this.#text.setAttribute("aria-live", "polite");
    else this.#text.removeAttribute("aria-live");
    this.#text.classList.toggle("coloured", look.coloured);
    const asTokens = run.tokens.length > 0 && (look.coloured || look.beside);
    // Among the tokens is what the model thought.
    this.#thought.hidden = run.reasoning === "" || asTokens;
    if (asTokens) this.#showTokens(run, look, isNew);
    else this.#showMarkdown(run, look, isNew);
  }

  #showTokens(run: Run, look: Look, isNew: boolean): void {
    if (isNew || !this.#tokens) {
      this.#markdown = null;
      this.#tokens = new TokensView(this.#card);
      this.#text.replaceChildren(this.#tokens.root);
    }
    this.#tokens.show(run, look.shown ?? Number.POSITIVE_INFINITY, look.difference);
  }

  #showMarkdown(run: Run, look: Look, isNew: boolean): void {
    if (isNew || !this.#markdown) {
      this.#tokens = null;
      this.#markdown = new MarkdownView();
      this.#text.replaceChildren(this.#markdown.root);
    }
    const cut = look.shown === null ? null : run.tokens.slice(0, look.shown);
    const text = cut ? cut.map((token) => token.text).join("") : run.text;
    this.#markdown.show(text, cut === null && !isUnderWay(run));
  }
}
