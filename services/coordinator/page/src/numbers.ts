/** The figures of a run in a line, which live while tokens come. */

import { el, setText } from "./dom.ts";
import {
  acceptanceRate,
  bytesPerToken,
  firstTokenMs,
  tokensPerRound,
  tokensPerSecond,
} from "./figures.ts";
import { type Run, tokenCount } from "./run.ts";
import { number, percent, type TextKey, t } from "./texts.ts";

const NONE = "–";

export class NumbersView {
  readonly root = el("dl", { class: "numbers" });
  readonly #values = new Map<TextKey, HTMLElement>();

  show(run: Run): void {
    const { rounds } = run;
    this.#figure("firstToken", firstTokenMs(run), (ms) => `${number(ms)} ms`);
    this.#figure("perSecond", tokensPerSecond(run), (speed) => number(speed, speed < 100 ? 1 : 0));
    const rate = run.metrics?.draft_acceptance_rate ?? acceptanceRate(rounds);
    this.#figure("acceptance", rate, percent);
    this.#figure("perRound", tokensPerRound(rounds), (count) => number(count, 2));
    this.#figure("perToken", bytesPerToken(rounds), (bytes) => number(bytes));
    this.#figure("tokens", tokenCount(run), (count) => number(count));
    if (run.cachedTokens) this.#figure("cached", run.cachedTokens, (count) => number(count));
  }

  #figure(name: TextKey, value: number | null, format: (value: number) => string): void {
    let shown = this.#values.get(name);
    if (!shown) {
      shown = el("dd");
      this.#values.set(name, shown);
      this.root.append(el("div", {}, shown, el("dt", {}, t(name))));
    }
    setText(shown, value === null ? NONE : format(value));
  }
}
