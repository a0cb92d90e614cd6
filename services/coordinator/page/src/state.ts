/** What the page knows. */

import type { Failure, Run } from "./run.ts";

export type Mode = "chat" | "complete";

/** A file that was attached: its text goes into the message. */
export interface TextFile {
  name: string;
  text: string;
}

/** What the user wrote, and the generations that answer it: two where panes stand side by side. */
export interface Turn {
  id: number;
  text: string;
  files: TextFile[];
  runs: number[];
}

/** What is typed in the fields of sampling; empty is the server's default. */
export interface Sampling {
  temperature: string;
  top_p: string;
  max_tokens: string;
  seed: string;
}

/** A pane's method, and what is typed for its parameters and the axes; empty is the default. */
export interface Settings {
  method: string;
  values: Record<string, string>;
}

export interface Options {
  coloured: boolean;
  logprobs: boolean;
  sideBySide: boolean;
  atOnce: boolean;
  /** How many times slower rounds are played than they came; null is as suits the run. */
  slower: number | null;
}

/** What `GET v1/methods` tells. */
export interface Methods {
  methods: Method[];
  rules: Rule[];
  axes: Axis[];
}

export interface Method {
  name: string;
  aliases: string[];
  summary: string;
  lossless: boolean;
  reproducible: boolean;
  source: string;
  allowed: boolean;
  parameters: Parameter[];
}

export interface Parameter {
  name: string;
  type: string;
  range: string;
  default: string;
  help: string;
}

export interface Rule {
  name: string;
  summary: string;
  least_alpha: number;
  most_alpha: number;
  default_alpha: number;
}

export interface Axis {
  name: string;
  help: string;
  default: string;
  values: { form: string; range: string; help: string }[];
}

/** A run that is played again: up to which round. */
export interface Replay {
  run: number;
  rounds: number;
  playing: boolean;
}

export interface State {
  models: string[];
  model: string;
  version: string;
  /** Whether the model has a chat template; null while that is not known. */
  canChat: boolean | null;
  methods: Methods | null;
  mode: Mode;
  system: string;
  turns: Record<Mode, Turn[]>;
  runs: Record<number, Run>;
  /** By run: the run of the target alone that it was measured against. */
  baselines: Record<number, number>;
  sampling: Sampling;
  settings: Settings[];
  options: Options;
  replay: Replay | null;
  /** What failed outside of any answer. */
  failure: Failure | null;
  /** Whether a token is asked for, and whether one was refused before. */
  login: { wrong: boolean } | null;
  /** The turn whose text is being edited. */
  editing: number | null;
}

export const FIRST_STATE: State = {
  models: [],
  model: "",
  version: "",
  canChat: null,
  methods: null,
  mode: "chat",
  system: "",
  turns: { chat: [], complete: [] },
  runs: {},
  baselines: {},
  sampling: { temperature: "", top_p: "", max_tokens: "256", seed: "" },
  settings: [
    { method: "", values: {} },
    { method: "", values: {} },
  ],
  options: { coloured: true, logprobs: false, sideBySide: false, atOnce: false, slower: null },
  replay: null,
  failure: null,
  login: null,
  editing: null,
};
