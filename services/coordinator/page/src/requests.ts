/** Makes the bodies of requests out of what the user chose. */

import { ApiError } from "./api.ts";
import type { Mode, Sampling, Settings, State, TextFile, Turn } from "./state.ts";
import { t } from "./texts.ts";

/** The largest seed that the page sends: JSON's numbers are exact up to here. */
export const MOST_SEED = Number.MAX_SAFE_INTEGER;

/** How many alternatives are asked for with log probabilities. */
const ALTERNATIVES = 5;

type Body = Record<string, unknown>;

/** Returns where the answer to `turn` is asked for. */
export function pathOf(mode: Mode): string {
  return mode === "chat" ? "v1/chat/completions" : "v1/completions";
}

/** Returns the request of pane `pane` for `turn`, which stands in the state's list of turns. */
export function bodyOf(state: State, turn: Turn, pane: number, seed: number | null): Body {
  const { mode, options } = state;
  const logprobs =
    mode === "chat" ? { logprobs: true, top_logprobs: ALTERNATIVES } : { logprobs: ALTERNATIVES };
  return {
    ...(state.model === "" ? {} : { model: state.model }),
    ...(mode === "chat" ? { messages: messages(state, turn) } : { prompt: whole(turn) }),
    ...samplingFields(state.sampling),
    ...(seed === null ? {} : { seed }),
    ...(options.logprobs ? logprobs : {}),
    stream: true,
    stream_options: { include_usage: true },
    return_token_ids: true,
    report_rounds: true,
    speculation: speculation(state.settings[pane] as Settings),
  };
}

/** Returns the same request for the target alone. */
export function targetAlone(body: Body, seed: number): Body {
  return { ...body, seed, speculation: { enabled: false } };
}

/** Returns the seed that is typed, null where none is. */
export function typedSeed(sampling: Sampling): number | null {
  return sampling.seed.trim() === "" ? null : Number(sampling.seed);
}

/** Refuses a seed that would become another one on its way. */
export function checkSeed({ seed }: Body): void {
  if (seed === undefined || Number.isSafeInteger(seed)) return;
  throw new ApiError({ message: t("seedRange", { most: MOST_SEED }), param: "seed", status: null });
}

/** Returns a seed for several requests that must share one. */
export function drawnSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] as number;
}

/** Returns what a turn says, with its files in fences longer than any that they contain. */
export function whole({ text, files }: { text: string; files: TextFile[] }): string {
  return [text, ...files.map(fenced)].filter((part) => part !== "").join("\n\n");
}

function fenced({ name, text }: TextFile): string {
  const longest = Math.max(2, ...(text.match(/`{3,}/g) ?? []).map((fence) => fence.length));
  const fence = "`".repeat(longest + 1);
  return `${name}:\n${fence}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
}

/** Returns the conversation up to `turn`. Turns without an answer are left out: templates want both in turn. */
function messages(state: State, turn: Turn): { role: string; content: string }[] {
  const all = state.turns.chat;
  const before = all.slice(0, Math.max(0, all.indexOf(turn)));
  const said = before.flatMap((earlier) => {
    const answer = state.runs[earlier.runs[0] ?? -1]?.text;
    if (!answer) return [];
    return [
      { role: "user", content: whole(earlier) },
      { role: "assistant", content: answer },
    ];
  });
  const system = state.system.trim() === "" ? [] : [{ role: "system", content: state.system }];
  return [...system, ...said, { role: "user", content: whole(turn) }];
}

function samplingFields({ temperature, top_p, max_tokens }: Sampling): Body {
  const given = Object.entries({ temperature, top_p, max_tokens });
  return Object.fromEntries(
    given.filter(([, text]) => text.trim() !== "").map(([name, text]) => [name, Number(text)]),
  );
}

/** Returns the field `speculation`. An empty value is left out, and is then the server's default. */
export function speculation({ method, values }: Settings): Body {
  const given = Object.entries(values).filter(([, text]) => text.trim() !== "");
  const typed = given.map(([name, text]) => [name, asTyped(text.trim())]);
  return { ...(method === "" ? {} : { method }), ...Object.fromEntries(typed) };
}

function asTyped(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true";
  const number = Number(text);
  return Number.isFinite(number) ? number : text;
}
