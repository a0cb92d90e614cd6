// @openai/agents with tools, over chat completions and over responses: two turns, whole and streamed, and a handoff.
import assert from "node:assert/strict";

import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

setTracingDisabled(true);
const client = (url) => new OpenAI({ baseURL: `${url}/v1`, apiKey: "anything", maxRetries: 0 });
const relayed = client(process.env.OUTRIDER_RELAY);
const direct = client(process.env.OUTRIDER_HTTP);

const parameters = z.object({ city: z.string().max(12), unit: z.enum(["celsius", "fahrenheit"]) });
const called = [];
const weather = tool({
  name: "weather",
  description: "The weather in a city.",
  parameters,
  execute: (given) => {
    called.push(given);
    return { sky: "sunny", degrees: 21 };
  },
});
const kinds = (items) => items.map((item) => item.type ?? "message").join();

for (const Model of [OpenAIChatCompletionsModel, OpenAIResponsesModel]) {
  // Over responses, an answer that its limit ends is an error to this client.
  const modelSettings = { temperature: 0, maxTokens: 600, store: false };
  const instructions = "Answer in a few words.";
  const agent = new Agent({ name: "Weather", instructions, tools: [weather], model: new Model(relayed, "SmolLM2"), modelSettings });
  let history = [];
  for (const turn of ["What is the weather in Paris?", "And in Rome?"]) {
    const asked = [...history, { role: "user", content: turn }];
    called.length = 0;
    const whole = await run(agent, asked);
    assert.ok(whole.finalOutput.length > 0, turn);
    assert.equal(called.length, 1);
    parameters.parse(called[0]);
    assert.equal(kinds(whole.history.slice(asked.length)), "function_call,function_call_result,message");

    const streamed = await run(agent, asked, { stream: true });
    let text = "";
    for await (const piece of streamed.toTextStream()) text += piece;
    await streamed.completed;
    assert.equal(text, whole.finalOutput, turn);
    assert.deepEqual(called[1], called[0]);
    history = whole.history;
  }

  // Handed to another agent by a call; its own model has no tools, and answers.
  const other = new Agent({ name: "Other", instructions: "Answer in a few words.", model: new Model(direct, "SmolLM2"), modelSettings });
  const first = new Agent({ name: "Reception", handoffs: [other], model: new Model(relayed, "SmolLM2"), modelSettings });
  const handed = await run(first, "What is a fox?");
  assert.equal(handed.lastAgent.name, "Other");
  assert.ok(handed.finalOutput.length > 0);
}
