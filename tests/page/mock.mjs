// A server with the coordinator's interface, for what the real one cannot be made to do: hostile output, 4,000 tokens
// a second, a connection that breaks. What it does is named by the first word of the prompt. Started by itself,
// `node tests/page/mock.mjs PORT`, it is there to look at the page.
import { listen, servePage } from "./files.mjs";
import { METHODS } from "./methods.mjs";

const STORY = (
  "Once upon a time there was a small fox who lived at the edge of a wood.\n\nEvery morning it ran down to the " +
  "river, looked for *silver* fish, and told them what the large owl had said. The owl always took its time, and " +
  "was always right; the fox was quick, and mostly right, too.\n\n- The fox guessed.\n- The owl checked.\n- Both " +
  "were home before dark.\n\nSo they agreed: the fox would go ahead, and the owl would say how far it might go. "
).match(/\s*\S+/g);

/** Outputs that try to do harm, by the word that asks for them. */
const HOSTILE = {
  html: [
    "<script>window.harmed = 1</script>",
    " <img src=x onerror='window.harmed = 1'> **bold**\n\n",
    "see [link](javascript:window.harmed=1) [there](https://elsewhere.invalid/a)",
    "\n\n![picture](https://elsewhere.invalid/p.png)\n\n",
    "<iframe src='https://elsewhere.invalid'></iframe><style>body{display:none}</style>\n\n",
    "<svg onload='window.harmed = 1'><a xlink:href='javascript:1'>x</a></svg>",
    "<form action='https://elsewhere.invalid'><button>b</button></form>",
  ],
  line: ["x".repeat(1_000_000), " and an end"],
  bidi: ["left \u202e right to left", " \u2067mark\u2069", " \u200fend", " שלום עולם"],
  escape: ["\u001b[31mred\u001b[0m", " bell\u0007", " null\u0000", " c1\u009b", " back\rspace"],
  unclosed: [
    "# Head **bold _never",
    " closed\n\n```js\nlet a = 1;\n",
    "| a | b\n|--",
    "[link](",
    "<b",
  ],
  nested: ["> ".repeat(20_000), "deep"],
};

/** Starts the server; `token` is what it wants of its clients, and `chat` whether the model has a template. */
export async function start({ port = 0, token = null, chat = true, prefix = "" } = {}) {
  const seen = [];
  const options = { token, chat, prefix, seen };
  const server = await listen(
    (request, response) => serve(request, response, options),
    port,
    prefix,
  );
  return { ...server, seen };
}

async function serve(request, response, { token, chat, prefix, seen }) {
  const path = request.url.slice(prefix.length).split("?")[0];
  if (await servePage(path, response)) return;
  if (token && request.headers.authorization !== `Bearer ${token}`) {
    return fail(response, 401, "unknown token", null);
  }
  if (request.method === "GET") {
    const chats = chat && !request.url.includes("model=other");
    const answers = {
      "/v1/models": { data: [{ id: "embedded:target" }, { id: "other" }] },
      "/tokenizer_info": { chat_template: chats ? "{{ messages }}" : null },
      "/v1/methods": METHODS,
      "/version": { version: "0.0.0" },
    };
    return path in answers
      ? json(response, 200, answers[path])
      : fail(response, 404, "no such path", null);
  }
  let body = "";
  for await (const piece of request) body += piece;
  seen.push(JSON.parse(body));
  await generate(response, JSON.parse(body));
}

async function generate(response, body) {
  const isChat = "messages" in body;
  const asked = isChat ? body.messages.at(-1).content : body.prompt;
  const [word, amount] = asked.split(/\s+/);
  if (word === "refuse")
    return fail(response, 400, "speculation.alpha: 7 is out of range", "speculation.alpha");
  if (word === "busy")
    return fail(response, 429, "too many requests", null, { "retry-after": "3" });
  response.writeHead(200, { "content-type": "text/event-stream" });
  const stream = new Stream(response, body, isChat);
  if (word === "hold") await sleep(600);
  if (word in HOSTILE) stream.round(HOSTILE[word]);
  else if (word === "fast") await stream.paced(Number(amount), 4000);
  else if (word === "slow") await stream.paced(Number(amount ?? 20), 8);
  else await stream.paced(Math.min(body.max_tokens ?? 60, STORY.length), 400);
  if (word === "nonsense") stream.response.write("data: <html>\n\n");
  if (word === "break") return response.destroy();
  if (word === "error") {
    stream.send({
      error: { message: "no verifier is left", type: "server_error", param: null, code: null },
    });
    return response.end("data: [DONE]\n\n");
  }
  const lost = word === "fallback" ? "drafter http://127.0.0.1:7101: connection refused" : null;
  if (lost) stream.round(["alone"], [{ position: 0, reason: lost }]);
  if (lost) await sleep(Number(amount ?? 0));
  stream.finish(lost ? [lost] : []);
}

/** The pieces of one answer. */
class Stream {
  #rounds = 0;
  #tokens = 0;

  constructor(response, body, isChat) {
    Object.assign(this, { response, body, isChat, seed: body.seed ?? 1234567 });
  }

  send(piece) {
    this.response.write(`data: ${JSON.stringify(piece)}\n\n`);
  }

  /** Sends `count` tokens, as many a second, in rounds of up to five. */
  async paced(count, perSecond) {
    const begin = performance.now();
    while (this.#tokens < count && !this.response.destroyed) {
      const due = Math.min(count, ((performance.now() - begin) / 1000) * perSecond);
      while (this.#tokens < due) {
        const size = Math.min(1 + ((this.seed + this.#rounds * 7) % 5), count - this.#tokens);
        this.round(
          Array.from({ length: size }, (_, at) => STORY[(this.#tokens + at) % STORY.length]),
        );
      }
      await sleep(5);
    }
  }

  /** Sends a round: its tokens, all but the last accepted, and then what is to be told of it. */
  round(texts, fallbacks) {
    this.#rounds += 1;
    const alone = this.body.speculation?.enabled === false;
    const drafted = alone ? 0 : 4;
    const last = alone ? "target" : texts.length > drafted ? "bonus" : "recovered";
    const tokens = texts.map((text, at) => {
      const origin = at < texts.length - 1 ? (alone ? "target" : "accepted") : last;
      return { id: identify(text, this.body.speculation?.method), text, origin };
    });
    const text = texts.join("");
    const said = this.isChat ? { delta: { content: text } } : { text };
    const logprobs = this.body.logprobs ? this.#logprobs(texts) : null;
    this.send({ choices: [{ index: 0, ...said, tokens, logprobs, finish_reason: null }] });
    const round = {
      round: this.#rounds,
      base_len: this.#tokens,
      drafted,
      accepted: Math.min(texts.length - 1, drafted),
      emitted: texts.length,
      draft_us: alone ? 0 : 900 + (this.#rounds % 3) * 100,
      verify_us: 2100,
      wire_bytes: 310,
      fallbacks,
      drafter: { queue_us: 50, forward_us: 600, total_us: 700, batch: 1 },
      verifier: { queue_us: 80, forward_us: 1600, total_us: 1800, accept_us: 60, batch: 1 },
    };
    this.#tokens += texts.length;
    this.send({ choices: [{ index: 0, ...(this.isChat ? { delta: {} } : { text: "" }), round }] });
  }

  #logprobs(texts) {
    const others = [" other", " <b>"].map((token, at) => ({ token, logprob: -2 - at }));
    if (this.isChat) {
      return {
        content: texts.map((token) => ({
          token,
          logprob: -0.25,
          top_logprobs: [{ token, logprob: -0.25 }, ...others],
        })),
      };
    }
    return {
      tokens: texts,
      token_logprobs: texts.map(() => -0.25),
      top_logprobs: texts.map((token) => ({ [token]: -0.25, " other": -2 })),
    };
  }

  finish(reasons) {
    const method = this.body.speculation?.method ?? "target-only";
    const promise = method !== "lossy";
    this.send({
      choices: [
        { index: 0, ...(this.isChat ? { delta: {} } : { text: "" }), finish_reason: "stop" },
      ],
    });
    this.send({
      choices: [],
      usage: {
        prompt_tokens: 9,
        completion_tokens: this.#tokens,
        prompt_tokens_details: { cached_tokens: 0 },
      },
      speculation: {
        method,
        settings: { plan: "speculative", draft_len: "auto" },
        seed: this.seed,
        lossless: promise,
        reproducible: promise,
        exact: promise,
      },
      metrics: { speculative_decoding: { draft_acceptance_rate: null, fallback_reasons: reasons } },
      timings: {},
    });
    this.response.end("data: [DONE]\n\n");
  }
}

/** Another method has other tokens from the eighth word on, so that there is something to compare. */
function identify(text, method) {
  const hash = [...text.slice(0, 50)].reduce(
    (sum, character) => (sum * 31 + character.codePointAt(0)) % 50_000,
    7,
  );
  return method === "lossy" && /small|river/.test(text) ? hash + 1 : hash;
}

function json(response, status, value, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(value));
}

function fail(response, status, message, param, headers = {}) {
  json(
    response,
    status,
    { error: { message, type: "invalid_request_error", param, code: null } },
    headers,
  );
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

if (process.argv[1] === import.meta.filename) {
  const { url } = await start({ port: Number(process.argv[2] ?? 8400) });
  console.log(url);
}
