/** Renders the Markdown of an answer: safely, and while it comes only the block that changed. */

import DOMPurify from "dompurify";
import { Marked } from "marked";
import { blocksOf, isCode, isDefinition } from "./blocks.ts";
import { el } from "./dom.ts";
import { PlainText } from "./plain.ts";
import { withoutControls } from "./visible.ts";

/** A longer block is shown as plain text: the grammar within lines takes quadratic time at worst. */
const LONGEST_BLOCK = 8192;
/** A longer text without the end of a block is no longer looked through while it comes. */
const LONGEST_OPEN = 131_072;
/** Of the time that passes, rendering takes at most one part in so many. */
const SHARE = 6;

const marked = new Marked({
  gfm: true,
  renderer: {
    // Nothing that the model writes as HTML is ever HTML here: it is shown as it was written.
    html: ({ text, block }) => (block ? `<pre>${escaped(text)}</pre>` : escaped(text)),
    // An image would tell its server who reads this, so it is only a link.
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  node.setAttribute("rel", "noopener noreferrer nofollow");
  node.setAttribute("target", "_blank");
});

const SAFE = {
  ALLOWED_TAGS: (
    "p br hr h1 h2 h3 h4 h5 h6 strong em del code pre blockquote ul ol li a " +
    "table thead tbody tr th td"
  ).split(" "),
  ALLOWED_ATTR: ["href", "title", "align", "start"],
  // Only whole addresses: a relative one would lead to this server.
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  RETURN_DOM_FRAGMENT: true as const,
};

export class MarkdownView {
  readonly root = el("div", { class: "markdown" });
  #raw = "";
  #text = "";
  #whole = false;
  #settled = 0;
  #definitions = "";
  #open: Element | null = null;
  #openText: PlainText | null = null;
  #restUntil = 0;
  #timer = 0;

  /** Shows `text`, which only grows until it is `whole`. */
  show(text: string, whole: boolean): void {
    if (text === this.#raw && whole === this.#whole) return;
    // What was whole was settled to its end, and cannot grow.
    if (this.#whole || !text.startsWith(this.#raw)) this.#clear();
    this.#whole = whole;
    this.#text += withoutControls(text.slice(this.#raw.length).replaceAll("\r\n", "\n"));
    this.#raw = text;
    window.clearTimeout(this.#timer);
    const wait = this.#restUntil - performance.now();
    if (whole || wait <= 0) this.#render(whole);
    else this.#timer = window.setTimeout(() => this.#render(false), wait);
  }

  #render(whole: boolean): void {
    const begin = performance.now();
    // A definition at the end gives links their addresses all over the text, so that is rendered once more.
    if (whole && this.#definitions !== "") this.#clearShown();
    const rest = this.#text.slice(this.#settled);
    if (rest.length > LONGEST_OPEN && !whole) this.#showOpenPlain(rest);
    else this.#showBlocks(rest, whole);
    const now = performance.now();
    this.#restUntil = now + (now - begin) * SHARE;
  }

  #showBlocks(rest: string, whole: boolean): void {
    const blocks = blocksOf(rest);
    const last = whole ? "" : (blocks.pop() ?? "");
    for (const block of blocks) {
      if (isDefinition(block)) this.#definitions += `\n\n${block}`;
      this.#closeOpen();
      this.root.append(this.#rendered(block));
      this.#settled += block.length;
    }
    if (last.length > LONGEST_BLOCK) {
      this.#showOpenPlain(last);
      return;
    }
    this.#closeOpen();
    if (last.trim() === "") return;
    this.#open = this.#rendered(last);
    this.root.append(this.#open);
  }

  /** Shows what comes as plain text, to which more can be added at no cost. */
  #showOpenPlain(text: string): void {
    if (!this.#openText) {
      this.#closeOpen();
      this.#openText = new PlainText();
      this.#open = this.#openText.root;
      this.root.append(this.#open);
    }
    this.#openText.show(text);
  }

  #closeOpen(): void {
    this.#open?.remove();
    this.#open = null;
    this.#openText = null;
  }

  #rendered(block: string): Element {
    if (block.length > LONGEST_BLOCK && !isCode(block)) return asPlain(block);
    try {
      const html = marked.parse(block + this.#definitions, { async: false });
      const element = el("div", { class: "block", dir: "auto" });
      element.append(DOMPurify.sanitize(html, SAFE));
      return element;
    } catch {
      // Nested too deeply for the parser.
      return asPlain(block);
    }
  }

  #clear(): void {
    this.#clearShown();
    this.#definitions = "";
    this.#raw = "";
    this.#text = "";
    this.#restUntil = 0;
  }

  #clearShown(): void {
    this.#closeOpen();
    this.root.replaceChildren();
    this.#settled = 0;
  }
}

function asPlain(text: string): Element {
  const plain = new PlainText();
  plain.show(text);
  return plain.root;
}

function escaped(text: string): string {
  const names: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, (character) => names[character] ?? "");
}
