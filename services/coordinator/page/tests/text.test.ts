import assert from "node:assert/strict";
import { test } from "node:test";
import { blocksOf } from "../src/blocks.ts";
import { visibleToken, withoutControls } from "../src/visible.ts";

const TEXTS = [
  "# Head\n\nA paragraph\nof two lines.\n\n- one\n\n- two\n   \n\n1. x\n",
  "```js\nlet a = 1;\n\n\nunclosed",
  "| a | b |\n|---|---|\n| 1 | 2 |\n\n> quote\n\n\n[name]: https://a.invalid\n",
  "\n\n  leading\n\ttabs\n\n<div>\n\nhtml\n",
  "> ".repeat(20_000),
];

test("blocks make up their text again", () => {
  for (const text of TEXTS) assert.equal(blocksOf(text).join(""), text);
});

test("every beginning of a text splits without loss", () => {
  for (const text of TEXTS.slice(0, 4)) {
    for (let end = 0; end <= text.length; end += 1) {
      assert.equal(blocksOf(text.slice(0, end)).join(""), text.slice(0, end));
    }
  }
});

test("control characters are pictures, and lines and tabs stay", () => {
  assert.equal(
    withoutControls("\u001b[31m\u0007\u0000\u007f\u009b a\tb\nc\r\nd\re"),
    "␛[31m␇␀␡⟨9b⟩ a\tb\nc\r\nd␍e",
  );
});

test("marks of direction and ends of lines can be seen in tokens", () => {
  assert.equal(visibleToken("\u202eabc\u2069\u200f"), "⟨RLO⟩abc⟨PDI⟩⟨RLM⟩");
  assert.equal(visibleToken("a\n"), "a↵\n");
  assert.equal(visibleToken(""), "◦");
});
