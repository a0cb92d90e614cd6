/** Conversations as files. */

import { pathOf } from "./requests.ts";
import { newRun, type Run } from "./run.ts";
import type { Mode, Sampling, State, TextFile, Turn } from "./state.ts";

const FORM = "outrider-conversation";

/** What a file holds. Of answers it has all that came, so that they can be looked into again. */
interface Conversation {
  form: typeof FORM;
  version: 1;
  mode: Mode;
  system: string;
  sampling: Sampling;
  turns: { text: string; files: TextFile[]; runs: Run[] }[];
}

/** Returns the conversation that is shown, as JSON. */
export function exported(state: Readonly<State>): string {
  const { mode, system, sampling } = state;
  const turns = state.turns[mode].map(({ text, files, runs }) => ({
    text,
    files,
    runs: runs.flatMap((id) => state.runs[id] ?? []),
  }));
  const whole: Conversation = {
    form: FORM,
    version: 1,
    mode,
    system,
    sampling,
    turns,
  };
  return JSON.stringify(whole, null, 1);
}

/** Returns the change of state that a file brings, or null if it is no conversation. */
export function imported(
  json: string,
  state: Readonly<State>,
  nextTurn: () => number,
): Partial<State> | null {
  const told = parsed(json);
  if (!told) return null;
  const runs = { ...state.runs };
  const turns: Turn[] = told.turns.map(({ text, files, runs: answers }) => {
    const ids = answers.map((answer) => {
      // A run of this page gets a number of this page, and is over, whatever it was when it was written.
      const fresh = newRun(answer.path, answer.body, 0);
      const phase = answer.phase === "failed" || answer.phase === "stopped" ? answer.phase : "done";
      runs[fresh.id] = { ...fresh, ...answer, id: fresh.id, phase, queued: false };
      return fresh.id;
    });
    return { id: nextTurn(), text, files, runs: ids };
  });
  const mode = told.mode === "chat" && state.canChat === false ? "complete" : told.mode;
  return {
    mode,
    system: told.system,
    sampling: { ...state.sampling, ...told.sampling },
    turns: { ...state.turns, [mode]: turns },
    runs,
    replay: null,
    editing: null,
  };
}

/** Returns what a file holds if it has the form of a conversation: it may be any file that a user picked. */
function parsed(json: string): Conversation | null {
  try {
    const told = JSON.parse(json) as Conversation;
    const isRun = (run: Run) =>
      typeof run.text === "string" &&
      // The target alone is measured with the request of the run, so its address must be one of the page's.
      [pathOf("chat"), pathOf("complete")].includes(run.path) &&
      [run.tokens, run.rounds, run.logprobs].every((list) => Array.isArray(list));
    const isTurn = ({ text, files, runs }: Conversation["turns"][number]) =>
      typeof text === "string" &&
      files.every(({ name, text }) => typeof name === "string" && typeof text === "string") &&
      runs.length <= 2 &&
      runs.every(isRun);
    const isKnown = told.form === FORM && told.version === 1;
    const isWhole =
      ["chat", "complete"].includes(told.mode) &&
      [told.system, ...Object.values(told.sampling)].every((text) => typeof text === "string");
    return isKnown && isWhole && told.turns.every(isTurn) ? told : null;
  } catch {
    return null;
  }
}
