/** The rounds of a run in time, a lane for each kind of work, and the controls that play them again. */

import { button, el, setText, svg } from "./dom.ts";
import { LANES, type Lane, partsOf, roundUs } from "./lanes.ts";
import { isUnderWay, type Round, type Run } from "./run.ts";
import { type TextKey, t } from "./texts.ts";

const LABEL_PX = 84;
const LANE_PX = 20;
const BLOCK_PX = 14;
const HEADER_PX = 20;
const HEIGHT_PX = HEADER_PX + 4 * LANE_PX;
/** Thousands of rounds are shown through a window of as many as stay legible. */
const ROUND_PX = 34;
/** While rounds come, the drawing is renewed after so long. */
const RENEW_MS = 200;

const LANE_NAMES: Record<Lane, TextKey> = {
  draft: "laneDraft",
  wire: "laneWire",
  verify: "laneVerify",
  accept: "laneAccept",
};

const SLOWER = [1, 10, 100, 1000];

/** What the controls do. */
export interface Playing {
  scrub(run: Run, rounds: number): void;
  toggle(run: Run): void;
  slower(times: number): void;
}

/** What is played: up to which round, whether it runs, and how much slower than it came. */
export interface Played {
  rounds: number | null;
  playing: boolean;
  slower: number;
}

export class TimelineView {
  readonly #drawing = svg("svg", { class: "lanes", role: "img" });
  readonly #scroll = el("div", { class: "lanes-frame" }, this.#drawing);
  readonly #slider = el("input", { type: "range", min: 0, "aria-label": t("scrub") });
  readonly #at = el("output", { class: "at" });
  readonly #play: HTMLButtonElement;
  readonly #speed: HTMLSelectElement;
  readonly #none = el("p", { class: "hint" }, t("noRounds"));
  readonly #controls: HTMLElement;
  readonly root: HTMLElement;
  #run: Run | null = null;
  #played: Played = { rounds: null, playing: false, slower: 1 };
  #drawnAt = 0;
  #width = 0;

  constructor(playing: Playing) {
    const withRun = (act: (run: Run) => void) => () => this.#run && act(this.#run);
    this.#play = button(t("play"), withRun(playing.toggle));
    this.#speed = el("select", {
      "aria-label": t("speed"),
      onchange: () => playing.slower(Number(this.#speed.value)),
    });
    for (const times of SLOWER) {
      const text = times === 1 ? t("asItCame") : t("slower", { times });
      this.#speed.append(el("option", { value: times }, text));
    }
    this.#slider.addEventListener(
      "input",
      withRun((run) => playing.scrub(run, this.#slider.valueAsNumber)),
    );
    this.#drawing.addEventListener("click", (event) => {
      const round = (event.target as Element).closest("[data-round]")?.getAttribute("data-round");
      if (round && this.#run) playing.scrub(this.#run, Number(round));
    });
    const controls = [this.#play, this.#slider, this.#at, this.#speed];
    this.#controls = el("div", { class: "player" }, ...controls);
    this.root = el("div", { class: "timeline" }, this.#scroll, this.#none, this.#controls);
    // The observer tells the width when layout is done, so that drawing asks for no layout of its own.
    new ResizeObserver(([entry]) => {
      this.#width = entry?.contentRect.width ?? 0;
      this.#draw();
    }).observe(this.#scroll);
  }

  show(run: Run, played: Played): void {
    const { rounds } = run;
    this.#run = run;
    this.#played = played;
    const hasRounds = rounds.length > 0;
    this.#none.hidden = hasRounds || isUnderWay(run);
    this.#scroll.hidden = !hasRounds;
    this.#controls.hidden = !hasRounds || isUnderWay(run);
    if (!hasRounds) return;
    const now = performance.now();
    if (isUnderWay(run) && now - this.#drawnAt < RENEW_MS) return;
    this.#drawnAt = now;
    this.#draw();
    if (!this.#controls.hidden) this.#showControls(rounds.length);
  }

  #showControls(count: number): void {
    const round = this.#played.rounds ?? count;
    this.#slider.max = String(count);
    this.#slider.value = String(round);
    this.#slider.setAttribute("aria-valuetext", t("roundAt", { round, count }));
    setText(this.#at, t("roundAt", { round, count }));
    setText(this.#play, this.#played.playing ? t("pause") : t("play"));
    this.#speed.value = String(this.#played.slower);
  }

  #draw(): void {
    const width = this.#width;
    const rounds = this.#run?.rounds ?? [];
    if (width === 0 || rounds.length === 0) return;
    const current = this.#played.rounds ?? rounds.length;
    const fit = Math.max(4, Math.floor((width - LABEL_PX) / ROUND_PX));
    const from = Math.max(0, Math.min(current - Math.ceil(fit / 2), rounds.length - fit));
    const window = rounds.slice(from, from + fit);
    const whole = window.reduce((sum, round) => sum + roundUs(round), 0);
    // A block of no known time is still to be seen, so each round has a least width.
    const least = Math.min(ROUND_PX, (width - LABEL_PX) / window.length) / 2;
    const scale = (width - LABEL_PX - least * window.length) / Math.max(1, whole);
    const paths = new Map<Lane, string>(LANES.map((lane) => [lane, ""]));
    let x = LABEL_PX;
    const frames = window.map((round, at) => {
      const own = least + roundUs(round) * scale;
      for (const [lane, outline] of outlines(round, x, own - 1)) {
        paths.set(lane, paths.get(lane) + outline);
      }
      const frame = roundFrame(round, from + at + 1, x, own, from + at + 1 === current);
      x += own;
      return frame;
    });
    const blocks = [...paths].map(([lane, d]) => svg("path", { class: `part ${lane}`, d }));
    this.#drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT_PX}`);
    this.#drawing.setAttribute("height", String(HEIGHT_PX));
    this.#drawing.setAttribute("aria-label", summary(rounds, current));
    this.#drawing.replaceChildren(...LANES.map(laneLabel), ...frames, ...blocks);
  }
}

function summary(rounds: readonly Round[], current: number): string {
  const round = rounds[Math.max(0, current - 1)];
  const { drafted = 0, accepted = 0 } = round ?? {};
  const count = rounds.length;
  return t("timelineHelp", { count, round: current, drafted, accepted });
}

function laneLabel(lane: Lane, at: number): SVGElement {
  const label = svg("text", { class: "label", x: 0, y: laneTop(at) + BLOCK_PX - 3 });
  label.textContent = t(LANE_NAMES[lane]);
  return label;
}

function laneTop(at: number): number {
  return HEADER_PX + at * LANE_PX + (LANE_PX - BLOCK_PX) / 2;
}

/** What can be clicked of a round: its frame, and above it its draft tokens, accepted of drafted. */
function roundFrame(
  round: Round,
  position: number,
  x: number,
  width: number,
  isCurrent: boolean,
): SVGElement {
  const frame = svg("rect", { class: "round", x, y: 0, width: width - 1, height: HEIGHT_PX });
  const counts = svg("text", { class: "counts", x: x + width / 2, y: HEADER_PX - 6 });
  counts.textContent = `${round.accepted}/${round.drafted}`;
  return svg("g", { class: isCurrent ? "current" : null, "data-round": position }, frame, counts);
}

/**
 * Returns the outlines of a round's parts. Those of a lane are drawn as one path: an element for each part
 * would be hundreds, several times a second.
 */
function outlines(round: Round, x: number, width: number): [Lane, string][] {
  const scale = width / Math.max(1, roundUs(round));
  return partsOf(round).map(({ lane, start, length }) => {
    const [left, wide] = [(x + start * scale).toFixed(1), Math.max(1, length * scale).toFixed(1)];
    return [lane, `M${left} ${laneTop(LANES.indexOf(lane))}h${wide}v${BLOCK_PX}h-${wide}z`];
  });
}
