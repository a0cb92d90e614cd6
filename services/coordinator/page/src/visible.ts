/** Makes characters visible that would otherwise act on the text around them, or not be seen at all. */

/** Control characters but tab and line feed, and a carriage return that a line feed does not follow. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]|\r(?!\n)/g;

/** Marks that change the direction of text. */
const DIRECTIONS: Record<string, string> = {
  "\u061c": "ALM",
  "\u200e": "LRM",
  "\u200f": "RLM",
  "\u202a": "LRE",
  "\u202b": "RLE",
  "\u202c": "PDF",
  "\u202d": "LRO",
  "\u202e": "RLO",
  "\u2066": "LRI",
  "\u2067": "RLI",
  "\u2068": "FSI",
  "\u2069": "PDI",
};

/** Returns `text` with pictures (such as ␛) for control characters, which a terminal or a page would obey. */
export function withoutControls(text: string): string {
  return text.replace(CONTROLS, (control) => {
    const code = control.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "␡" : `⟨${code.toString(16)}⟩`;
  });
}

/** Returns the text of one token as it is shown: also ends of lines and marks of direction can be seen. */
export function visibleToken(text: string): string {
  if (text === "") return "◦";
  return withoutControls(text.replace(/\r\n/g, "␍\n"))
    .replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (mark) => `⟨${DIRECTIONS[mark]}⟩`)
    .replace(/[\u200b-\u200d\u2060\ufeff]/g, (mark) => `⟨${mark.charCodeAt(0).toString(16)}⟩`)
    .replace(/\n/g, "↵\n");
}
