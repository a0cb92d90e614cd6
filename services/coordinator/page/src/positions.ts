/** How draft tokens fared by their position in the draft: a bar each. */

import { el, svg } from "./dom.ts";
import { type AtPosition, byPosition } from "./figures.ts";
import type { Run } from "./run.ts";
import { percent, t } from "./texts.ts";

const CHART_PX = 48;
const BAR_PX = 18;

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
