/** The figures of a run, and how they compare with the target alone. */

import { compared } from "./differences.ts";
import { button, el, setText, svg } from "./dom.ts";
import {
  type AtPosition,
  acceptanceRate,
  byPosition,
  bytesPerToken,
  firstTokenMs,
  tokensPerRound,
  tokensPerSecond,
} from "./figures.ts";
import { isUnderWay, type Run, tokenCount } from "./run.ts";
import { number, percent, type TextKey, t } from "./texts.ts";

const NONE = "–";
const CHART_PX = 48;
const BAR_PX = 18;

/** The figures in a line, which live while tokens come. */
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

/** How draft tokens fared by their position: a bar each. */
export class PositionsView {
  readonly #drawing = svg("svg", { class: "positions", role: "img" });
  readonly root = el("figure", {}, el("figcaption", {}, t("byPosition")), this.#drawing);

  show(run: Run): void {
    const positions = byPosition(run.rounds);
    this.root.hidden = positions.length === 0;
    const width = positions.length * BAR_PX;
    this.#drawing.setAttribute("viewBox", `0 0 ${width} ${CHART_PX + 14}`);
    this.#drawing.setAttribute("width", String(width));
    this.#drawing.setAttribute("height", String(CHART_PX + 14));
    this.#drawing.setAttribute("aria-label", positions.map(positionText).join("; "));
    this.#drawing.replaceChildren(...positions.map(bar));
  }
}

function positionText({ drafted, accepted }: AtPosition, at: number): string {
  const share = percent(accepted / drafted);
  return t("positionAt", { position: at + 1, percent: share, count: drafted });
}

function bar(position: AtPosition, at: number): SVGElement {
  const height = (position.accepted / position.drafted) * CHART_PX;
  const x = at * BAR_PX + 2;
  const width = BAR_PX - 4;
  const title = svg("title");
  title.textContent = positionText(position, at);
  const label = svg("text", { x: x + width / 2, y: CHART_PX + 11 });
  label.textContent = String(at + 1);
  const whole = svg("rect", { class: "whole", x, y: 0, width, height: CHART_PX, rx: 2 });
  const accepted = svg("rect", { class: "share", x, y: CHART_PX - height, width, height, rx: 2 });
  return svg("g", {}, title, whole, accepted, label);
}

/** The button that measures the target alone, and what came of it. */
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
