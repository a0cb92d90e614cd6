import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser } from "../src/sse.ts";

const STREAM =
  'data: {"a": 1}\n\n: keep-alive\n\ndata:first\r\ndata: second\r\n\r\nevent: x\rdata: ü\r\rdata: open';

test("events are the same however the network cuts them", () => {
  for (let size = 1; size <= STREAM.length; size += 1) {
    const parser = new EventParser();
    const events: string[] = [];
    for (let at = 0; at < STREAM.length; at += size)
      events.push(...parser.push(STREAM.slice(at, at + size)));
    assert.deepEqual(events, ['{"a": 1}', "first\nsecond", "ü"], `pieces of ${size}`);
  }
});

test("keep-alives and empty pieces bring no event", () => {
  const parser = new EventParser();
  assert.deepEqual(parser.push(": still here\n\n"), []);
  assert.deepEqual(parser.push(""), []);
  assert.deepEqual(parser.push("data: [DONE]\n\n"), ["[DONE]"]);
});
