/** Splits Markdown into its blocks, so that each is rendered by itself, once. */

import { Lexer } from "marked";

/** Returns the blocks of a text, each with the empty lines after it. Together they make up the text again. */
export function blocksOf(text: string): string[] {
  const blocks: string[] = [];
  for (const { type, raw } of tokensOf(text)) {
    const isSpace = type === "space" && blocks.length > 0;
    if (isSpace) blocks[blocks.length - 1] += raw;
    else blocks.push(raw);
  }
  return blocks;
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
