// LangChain.js: an agent with tools over chat completions and over responses, invoked and streamed.
import assert from "node:assert/strict";

import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent } from "langchain";
import { z } from "zod";

const schema = z.object({ city: z.string().max(12), unit: z.enum(["celsius", "fahrenheit"]) });
const called = [];
const weather = tool(
  (given) => {
    called.push(given);
    return JSON.stringify({ sky: "sunny", degrees: 21 });
  },
  { name: "weather", description: "The weather in a city.", schema },
);
const question = { role: "user", content: "What is the weather in Paris?" };
const model = (useResponsesApi, url, maxTokens) =>
  new ChatOpenAI({
    model: "SmolLM2",
    apiKey: "anything",
    configuration: { baseURL: `${url}/v1` },
    temperature: 0,
    maxTokens,
    maxRetries: 0,
    useResponsesApi,
    zdrEnabled: true,
  });

for (const useResponsesApi of [false, true]) {
  // One answer of the model itself.
  const bound = model(useResponsesApi, process.env.OUTRIDER_HTTP, 100).bindTools([weather], { tool_choice: "weather" });
  const whole = await bound.invoke([question]);
  assert.equal(whole.tool_calls.length, 1);
  assert.equal(whole.tool_calls[0].name, "weather");
  schema.parse(whole.tool_calls[0].args);
  let pieces;
  for await (const piece of await bound.stream([question])) pieces = pieces?.concat(piece) ?? piece;
  assert.deepEqual(pieces.tool_calls.map(({ name, args }) => [name, args]), [["weather", whole.tool_calls[0].args]]);

  // An agent: question, call, result, answer; then a second question behind them.
  const agent = createAgent({
    model: model(useResponsesApi, process.env.OUTRIDER_RELAY, 60),
    tools: [weather],
    systemPrompt: "Use the tool.",
  });
  called.length = 0;
  const first = await agent.invoke({ messages: [question] });
  const kinds = (messages) => messages.map((message) => message.getType()).join();
  assert.equal(kinds(first.messages), "human,ai,tool,ai");
  assert.equal(called.length, 1);
  schema.parse(called[0]);
  assert.ok(first.messages.at(-1).text.length > 0);
  const second = await agent.invoke({ messages: [...first.messages, { role: "user", content: "And in Rome?" }] });
  assert.equal(kinds(second.messages), "human,ai,tool,ai,human,ai,tool,ai");
  assert.equal(called.length, 2);

  let text = "";
  const seen = [];
  for await (const [message] of await agent.stream({ messages: [question] }, { streamMode: "messages" })) {
    if (AIMessage.isInstance(message)) text += message.text;
    if (ToolMessage.isInstance(message)) seen.push(message.name);
  }
  assert.deepEqual(seen, ["weather"]);
  assert.deepEqual(called[2], called[0]);
  assert.equal(text, first.messages.at(-1).text);
}
