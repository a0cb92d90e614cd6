// The AI SDK: generateText, streamText, generateObject and streamObject, over chat completions and over responses.
import assert from "node:assert/strict";

import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, streamObject, streamText } from "ai";
import { z } from "zod";

const baseURL = `${process.env.OUTRIDER_HTTP}/v1`;
const openai = createOpenAI({ baseURL, apiKey: "anything" });
const compatible = createOpenAICompatible({ name: "outrider", baseURL, supportsStructuredOutputs: true });
const asked = { system: "Tell stories.", prompt: "Once upon a time", temperature: 0, maxOutputTokens: 24, maxRetries: 0 };

const schema = z.object({ name: z.string().max(8), age: z.number().int().min(0).max(30), kind: z.enum(["cat", "dog"]) });

for (const [name, model] of [
  ["chat", openai.chat("default")],
  ["responses", openai.responses("default")],
  ["compatible", compatible("default")],
]) {
  const whole = await generateText({ ...asked, model });
  assert.ok(whole.text.length > 0, name);
  assert.equal(whole.usage.outputTokens, 24, name);
  assert.equal(whole.finishReason, "length", name);
  const stream = streamText({ ...asked, model });
  let text = "";
  for await (const piece of stream.textStream) text += piece;
  assert.equal(text, whole.text, name);

  // What came goes back as a turn; to responses whole, not as the name of something that the server kept.
  const messages = [{ role: "user", content: asked.prompt }, ...whole.response.messages, { role: "user", content: "Go on." }];
  const { system, temperature, maxOutputTokens, maxRetries } = asked;
  const providerOptions = { openai: { store: false } };
  const next = await generateText({ model, system, messages, temperature, maxOutputTokens, maxRetries, providerOptions });
  assert.ok(next.usage.inputTokens > whole.usage.inputTokens + 24, name);

  const pet = await generateObject({ ...asked, model, schema, maxOutputTokens: 200 });
  assert.ok(schema.parse(pet.object), name);
  const pieces = streamObject({ ...asked, model, schema, maxOutputTokens: 200 });
  for await (const _ of pieces.textStream);
  assert.deepEqual(await pieces.object, pet.object, name);
}

await assert.rejects(generateText({ ...asked, model: openai.chat("other") }), /other/);
