/** Shows text as it is, also a megabyte of it in one line. */

import { el } from "./dom.ts";

/** Browsers lay a block out anew as a whole, so a long text is laid out in pieces of this many characters. */
const PIECE = 4096;

export class PlainText {
  readonly root = el("div", { class: "plain" });
  #shown = "";
  #lastStart = 0;

  /** Shows `text`. Where it only grew, only the last piece is touched. */
  show(text: string): void {
    if (text === this.#shown) return;
    if (!text.startsWith(this.#shown)) this.#clear();
    this.#shown = text;
    while (true) {
      const end = pieceEnd(text, this.#lastStart);
      const piece = this.root.lastElementChild ?? this.#addPiece();
      piece.textContent = text.slice(this.#lastStart, end);
      if (end >= text.length) return;
      this.#lastStart = end;
      this.#addPiece();
    }
  }

  #addPiece(): Element {
    return this.root.appendChild(el("div", { class: "piece", dir: "auto" }));
  }

  #clear(): void {
    this.root.replaceChildren();
    this.#lastStart = 0;
  }
}

/** Where the piece that begins at `start` ends: best after a line, and never within a character. */
function pieceEnd(text: string, start: number): number {
  const most = start + PIECE;
  if (text.length <= most) return text.length;
  const line = text.lastIndexOf("\n", most - 1);
  if (line > start) return line + 1;
  const splitsPair = /[\ud800-\udbff]/.test(text[most - 1] ?? "");
  return splitsPair ? most - 1 : most;
}
