/** Splits Markdown into its blocks, so that each is rendered by itself, once. */

import { Lexer } from "marked";

/** Returns the blocks of a text, each with the empty lines after it. Together they make up the text again. */
export function blocksOf(text: string): string[] {
  const ends: number[] = [];
  let end = 0;
  for (const { type, raw } of tokensOf(text)) {
    end += raw.length;
    if (type === "space" && ends.length > 0) ends.pop();
    ends.push(end);
  }
  // The lexer mends some of what it reads, so only its lengths are taken; the last block is what is left.
  ends.pop();
  return [...ends, text.length].map((each, at) => text.slice(ends[at - 1] ?? 0, each));
}

function tokensOf(text: string): { type: string; raw: string }[] {
  try {
    return new Lexer().blockTokens(text);
  } catch {
    // Thousands of quotes or lists in each other are too deep for the lexer: that is one block, and no Markdown.
    return [{ type: "text", raw: text }];
  }
}

/** Whether a block gives names to addresses, which links of other blocks may use. */
export function isDefinition(block: string): boolean {
  return /^ {0,3}\[[^\]]+\]:/.test(block);
}

export function isCode(block: string): boolean {
  return /^ {0,3}(```|~~~)/.test(block);
}
