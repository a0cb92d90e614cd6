/** The button that measures the target alone, and what came of it. */

import { compared } from "./differences.ts";
import { button, el, setText } from "./dom.ts";
import { tokensPerSecond } from "./figures.ts";
import { isUnderWay, type Run } from "./run.ts";
import { number, t } from "./texts.ts";

export class BaselineView {
  readonly #button: HTMLButtonElement;
  readonly #outcome = el("p", { role: "status" });
  readonly root: HTMLElement;
  #run: Run | null = null;

  constructor(measure: (run: Run) => void) {
    this.#button = button(t("measureAlone"), () => this.#run && measure(this.#run));
    this.root = el("div", { class: "baseline" }, this.#button, this.#outcome);
  }

  /** `busy` says that something is under way, which a measurement would disturb. */
  show(run: Run, alone: Run | null, busy: boolean): void {
    this.#run = run;
    this.root.hidden = run.phase !== "done" || run.speculation === null;
    this.#button.disabled = busy;
    setText(this.#outcome, alone ? outcome(run, alone) : "");
  }
}

function outcome(run: Run, alone: Run): string {
  if (isUnderWay(alone)) return t("measuring");
  if (alone.failure) return t("aloneFailed", { message: alone.failure.message });
  if (alone.phase === "stopped") return t("aloneStopped");
  const [speed, baseline] = [tokensPerSecond(run), tokensPerSecond(alone)];
  const comparison = compared(run, alone);
  const same = comparison.is === "identical" ? t("sameText") : t("otherText");
  if (speed === null || baseline === null) return same;
  const ratio = number(speed / baseline, 2);
  return `${t("ratio", { speed: number(speed, 1), alone: number(baseline, 1), ratio })} ${same}`;
}
