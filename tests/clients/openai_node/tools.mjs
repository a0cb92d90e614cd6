// openai-node: tools over chat completions and over responses, whole and streamed, and its helpers.
import assert from "node:assert/strict";

import OpenAI from "openai";
import { zodFunction, zodResponsesFunction } from "openai/helpers/zod";
import { z } from "zod";

const direct = new OpenAI({ baseURL: `${process.env.OUTRIDER_HTTP}/v1`, apiKey: "anything", maxRetries: 0 });
const relayed = new OpenAI({ baseURL: `${process.env.OUTRIDER_RELAY}/v1`, apiKey: "anything", maxRetries: 0 });

const place = z.object({ city: z.string().max(12), unit: z.enum(["celsius", "fahrenheit"]) });
const moment = z.object({ zone: z.enum(["UTC", "CET"]) });
const about = { weather: ["The weather in a city.", place], clock: ["The time in a zone.", moment] };
const question = { role: "user", content: "What is the weather in Paris?" };
const result = JSON.stringify({ sky: "sunny", degrees: 21 });

const of = (make) => Object.entries(about).map(([name, [description, parameters]]) => make({ name, description, parameters }));
const chatTools = of(zodFunction);
const responseTools = of(zodResponsesFunction);
const read = (name, text) => about[name][1].parse(JSON.parse(text));
const same = (calls) => calls.map(({ function: it }) => [it.name, it.arguments]);

await chat();
await helpers();
await responses();

async function chat() {
  const asked = { model: "SmolLM2", messages: [question], tools: chatTools, temperature: 0, max_completion_tokens: 100 };
  const ways = [
    [{ tool_choice: "required" }, (names) => names.length === 1],
    [{ tool_choice: "required", parallel_tool_calls: false }, (names) => names.length === 1],
    [{ tool_choice: { type: "function", function: { name: "clock" } } }, (names) => names.join() === "clock"],
    // A small model may go on with calls until its limit.
    [{ tool_choice: "required", parallel_tool_calls: true }, (names) => names.length > 1, ["tool_calls", "length"]],
  ];
  for (const [way, isRight, reasons = ["tool_calls"]] of ways) {
    const request = { ...asked, ...way };
    const { message, finish_reason } = (await direct.chat.completions.create(request)).choices[0];
    assert.ok(reasons.includes(finish_reason), finish_reason);
    assert.equal(message.content, null);
    const whole = finish_reason === "length" ? message.tool_calls.slice(0, -1) : message.tool_calls;
    for (const { function: it } of whole) read(it.name, it.arguments);
    assert.ok(isRight(whole.map((call) => call.function.name)), whole);

    // The pieces of a stream, put together as they come, are the whole answer.
    const calls = [];
    let reason;
    for await (const piece of await direct.chat.completions.create({ ...request, stream: true })) {
      for (const part of piece.choices[0]?.delta.tool_calls ?? []) {
        calls[part.index] ??= { id: part.id, function: { name: part.function.name, arguments: "" } };
        calls[part.index].function.arguments += part.function.arguments ?? "";
      }
      reason = piece.choices[0]?.finish_reason ?? reason;
    }
    assert.equal(reason, finish_reason);
    assert.deepEqual(same(calls), same(message.tool_calls));
    assert.equal(new Set(calls.map((call) => call.id)).size, calls.length);
  }

  // Its result goes back, and the answer is text; none is text at once.
  const { message } = (await direct.chat.completions.create({ ...asked, tool_choice: "required" })).choices[0];
  const results = message.tool_calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: result }));
  for (const messages of [[question], [question, message, ...results]]) {
    const next = (await direct.chat.completions.create({ ...asked, messages, tool_choice: "none" })).choices[0];
    assert.ok(next.message.content.length > 0);
    assert.equal(next.message.tool_calls, undefined);
    assert.notEqual(next.finish_reason, "tool_calls");
  }

  await assert.rejects(
    direct.chat.completions.create({ ...asked, tool_choice: { type: "function", function: { name: "other" } } }),
    (error) => error.status === 400 && /other/.test(error.message),
  );
}

async function helpers() {
  const asked = { model: "SmolLM2", messages: [question], temperature: 0, max_completion_tokens: 60 };
  const parsed = await direct.chat.completions.parse({ ...asked, tools: chatTools, tool_choice: "required" });
  for (const { function: it } of parsed.choices[0].message.tool_calls) about[it.name][1].parse(it.parsed_arguments);

  const stream = direct.chat.completions.stream({ ...asked, tools: chatTools, tool_choice: "required" });
  const done = [];
  stream.on("tool_calls.function.arguments.done", ({ name, arguments: text }) => done.push([name, text]));
  const last = await stream.finalChatCompletion();
  assert.deepEqual(same(last.choices[0].message.tool_calls), same(parsed.choices[0].message.tool_calls));
  assert.deepEqual(done, same(last.choices[0].message.tool_calls));

  // runTools calls the functions, sends the results back and goes on until there is a text.
  const texts = [];
  for (const stream of [false, true]) {
    const called = [];
    const tools = of(({ name, description, parameters }) =>
      zodFunction({ name, description, parameters, function: (given) => (called.push([name, given]), result) }),
    );
    const runner = relayed.chat.completions.runTools({ ...asked, tools, stream });
    texts.push(await runner.finalContent());
    assert.ok(called.length > 0);
    const roles = runner.messages.map(({ role }) => role);
    assert.deepEqual(roles, ["user", "assistant", ...called.map(() => "tool"), "assistant"]);
    for (const [name, given] of called) about[name][1].parse(given);
  }
  assert.ok(texts[0].length > 0);
  assert.equal(texts[1], texts[0]);
}

async function responses() {
  // A tool that is not a function is left out, which a line of the answer says.
  const tools = [{ type: "web_search" }, ...responseTools];
  const asked = { model: "SmolLM2", input: [question], tools, temperature: 0, max_output_tokens: 100, store: false };
  for (const [tool_choice, name] of [["required", undefined], [{ type: "function", name: "clock" }, "clock"]]) {
    const whole = await direct.responses.parse({ ...asked, tool_choice });
    assert.equal(whole.status, "completed");
    assert.ok(whole.warnings.some((line) => line.includes("web_search")), whole.warnings);
    const calls = whole.output.filter(({ type }) => type === "function_call");
    assert.ok(calls.length > 0);
    for (const call of calls) {
      assert.ok(name === undefined || call.name === name);
      about[call.name][1].parse(call.parsed_arguments);
    }

    const stream = direct.responses.stream({ ...asked, tool_choice });
    const pieces = {};
    const ended = [];
    const events = [];
    for await (const event of stream) {
      events.push(event.sequence_number);
      if (event.type === "response.function_call_arguments.delta") {
        pieces[event.output_index] = (pieces[event.output_index] ?? "") + event.delta;
      }
      if (event.type === "response.function_call_arguments.done") {
        assert.equal(event.arguments, pieces[event.output_index]);
        ended.push(event.arguments);
      }
    }
    assert.deepEqual(events, events.map((_, place) => place), "numbered without a gap");
    const last = await stream.finalResponse();
    const plain = (items) => items.map((it) => [it.type, it.name, it.arguments]);
    assert.deepEqual(plain(last.output), plain(whole.output));
    assert.deepEqual(ended, calls.map((call) => call.arguments));
  }

  // Two turns: what came goes back with its result.
  const first = await relayed.responses.create({ ...asked, instructions: "Use a tool." });
  const results = first.output.map(({ call_id }) => ({ type: "function_call_output", call_id, output: result }));
  const second = await relayed.responses.create({ ...asked, input: [question, ...first.output, ...results] });
  assert.ok(second.output_text.length > 0);
  assert.ok(second.output.every(({ type }) => type === "message"));
  const alone = await direct.responses.create({ ...asked, tool_choice: "none" });
  assert.ok(second.usage.input_tokens > alone.usage.input_tokens, "the call and its result are in the prompt");
}
