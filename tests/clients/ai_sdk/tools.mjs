// The AI SDK with tools: generateText and streamText of several steps, over chat completions and over responses.
import assert from "node:assert/strict";

import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, hasToolCall, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const schema = z.object({ city: z.string().max(12), unit: z.enum(["celsius", "fahrenheit"]) });
const called = [];
const weather = tool({
  description: "The weather in a city.",
  inputSchema: schema,
  execute: (given) => {
    called.push(given);
    return { sky: "sunny", degrees: 21 };
  },
});
const asked = {
  system: "Use the tool.",
  temperature: 0,
  maxOutputTokens: 60,
  maxRetries: 0,
  tools: { weather },
  providerOptions: { openai: { store: false } },
};
const question = { role: "user", content: "What is the weather in Paris?" };

const models = (url) => {
  const baseURL = `${url}/v1`;
  const openai = createOpenAI({ baseURL, apiKey: "anything" });
  const compatible = createOpenAICompatible({ name: "outrider", baseURL });
  return [openai.chat("SmolLM2"), openai.responses("SmolLM2"), compatible("SmolLM2")];
};
const direct = models(process.env.OUTRIDER_HTTP);
const relayed = models(process.env.OUTRIDER_RELAY);

for (const place of [0, 1, 2]) {
  // Steps, until there is an answer.
  called.length = 0;
  const stopWhen = stepCountIs(3);
  const whole = await generateText({ ...asked, model: relayed[place], messages: [question], stopWhen });
  assert.equal(whole.steps.length, 2);
  assert.equal(whole.steps[0].finishReason, "tool-calls");
  assert.equal(whole.steps[0].toolCalls[0].toolName, "weather");
  assert.equal(called.length, 1);
  schema.parse(called[0]);
  assert.ok(whole.text.length > 0);

  const stream = streamText({ ...asked, model: relayed[place], messages: [question], stopWhen });
  let text = "";
  let input = "";
  for await (const part of stream.fullStream) {
    assert.notEqual(part.type, "error", String(part.error));
    if (part.type === "text-delta") text += part.text;
    if (part.type === "tool-input-delta") input += part.delta;
  }
  assert.equal(text, whole.text);
  assert.deepEqual(JSON.parse(input), called[0]);
  assert.deepEqual(called[1], called[0]);
  assert.equal((await stream.steps).length, 2);

  // What came goes back, and a second question behind it.
  const messages = [question, ...whole.response.messages, { role: "user", content: "And in Rome?" }];
  const next = await generateText({ ...asked, model: relayed[place], messages, stopWhen });
  assert.equal(next.steps.length, 2);
  assert.equal(called.length, 3);

  // The choice of the caller.
  const model = direct[place];
  for (const toolChoice of ["required", { type: "tool", toolName: "weather" }]) {
    const one = await generateText({ ...asked, model, messages: [question], toolChoice, stopWhen: hasToolCall("weather") });
    assert.equal(one.toolCalls.length, 1);
  }
  const none = await generateText({ ...asked, model, messages: [question], toolChoice: "none", stopWhen });
  assert.equal(none.toolCalls.length, 0);
  assert.ok(none.text.length > 0);
}
