// @openai/agents over chat completions: three turns, whole and streamed, the history sent back as it came.
import assert from "node:assert/strict";

import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled } from "@openai/agents";
import OpenAI from "openai";

setTracingDisabled(true);
const client = new OpenAI({ baseURL: `${process.env.OUTRIDER_HTTP}/v1`, apiKey: "anything", maxRetries: 0 });
const agent = new Agent({
  name: "Storyteller",
  instructions: "Tell stories.",
  model: new OpenAIChatCompletionsModel(client, "default"),
  modelSettings: { temperature: 0, maxTokens: 16 },
});

let history = [];
const answers = [];
for (const turn of ["Once upon a time", "Go on.", "And then?"]) {
  const asked = [...history, { role: "user", content: turn }];
  const whole = await run(agent, asked);
  assert.ok(whole.finalOutput.length > 0, turn);
  const streamed = await run(agent, asked, { stream: true });
  let text = "";
  for await (const piece of streamed.toTextStream()) text += piece;
  await streamed.completed;
  assert.equal(text, whole.finalOutput, turn);
  history = whole.history;
  answers.push(whole.finalOutput);
}
assert.equal(history.length, 6);
assert.equal(new Set(answers).size, 3, "each turn has the ones before it");
