/** The card beside a token: what it is, who wrote it, and the round that brought it. */

import { el } from "./dom.ts";
import { type LogProbability, ORIGINS, type Origin, type Run, roundOf } from "./run.ts";
import { number, percent, t, time } from "./texts.ts";
import { visibleToken } from "./visible.ts";

/** The least distance to the edges of the window. */
const MARGIN_PX = 8;

export class Card {
  readonly root = el("div", { id: "card", class: "card", role: "tooltip", hidden: true });
  #beside: Element | null = null;

  /** Shows the token at `position` of `run`, beside the element that shows it in the text. */
  show(run: Run, position: number, beside: Element): void {
    const token = run.tokens[position];
    if (!token) return;
    const rows: Row[] = [
      [t("token"), `${token.id}`],
      [t("position"), `${position + 1}`],
      [t("origin"), originText(token.origin)],
      ...roundRows(run, position),
    ];
    const logprob = run.logprobs[position];
    this.root.replaceChildren(
      el("p", { class: `card-token ${token.origin}` }, el("bdi", {}, visibleToken(token.text))),
      el("dl", {}, ...rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
      ...(logprob ? [alternatives(logprob)] : []),
    );
    this.root.hidden = false;
    this.#beside = beside;
    this.#place(beside);
  }

  hide(): void {
    this.root.hidden = true;
    this.#beside = null;
  }

  /** Stays beside its token where the text is scrolled. */
  follow(): void {
    if (this.#beside) this.#place(this.#beside);
  }

  /** Below the token, or above it where there is no room. */
  #place(beside: Element): void {
    const token = beside.getClientRects()[0] ?? beside.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.root;
    const most = document.documentElement.clientWidth - width - MARGIN_PX;
    const below = token.bottom + MARGIN_PX;
    const fits = below + height <= window.innerHeight;
    const top = fits ? below : Math.max(MARGIN_PX, token.top - height - MARGIN_PX);
    this.root.style.left = `${Math.max(MARGIN_PX, Math.min(token.left, most))}px`;
    this.root.style.top = `${top}px`;
  }
}

type Row = [string, string];

/** A newer server may tell an origin that this page does not know. */
function originText(origin: Origin): string {
  return ORIGINS.includes(origin) ? `${t(origin)}: ${t(`${origin}Help`)}` : origin;
}

function roundRows(run: Run, position: number): Row[] {
  const round = roundOf(run.rounds, position);
  if (!round) return [];
  const { drafted, accepted, draft_us, verify_us } = round;
  const times: Row[] = [
    [t("draftTime"), time(draft_us)],
    [t("verifyTime"), time(verify_us)],
  ];
  const sources = (round.accepted_by ?? []).map(({ source, tokens }) => `${source} ${tokens}`);
  const counts = t("roundCounts", { drafted, accepted });
  return [
    [t("round"), `${round.round}: ${counts}`],
    ...(sources.length > 0 ? [[t("draftedBy"), sources.join(", ")] satisfies Row] : []),
    ...times.filter((_, at) => at > 0 || draft_us > 0),
  ];
}

function alternatives({ logprob, alternatives }: LogProbability): HTMLElement {
  const rows = alternatives.map(({ text, logprob }) =>
    el(
      "tr",
      {},
      el("td", {}, el("bdi", {}, visibleToken(text))),
      el("td", {}, number(logprob, 3)),
      el("td", {}, percent(Math.exp(logprob))),
    ),
  );
  const caption = `${t("logprob")}: ${number(logprob, 3)} (${percent(Math.exp(logprob))})`;
  return el("table", {}, el("caption", {}, caption), el("tbody", {}, ...rows));
}
