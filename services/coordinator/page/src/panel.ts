/** The settings beside the conversation: what is shown, sampling, and the method of each pane. */

import { el, setText } from "./dom.ts";
import { choice, Field, input } from "./field.ts";
import { Files } from "./files.ts";
import { MethodPanel } from "./methods.ts";
import { MOST_SEED } from "./requests.ts";
import type { Failure } from "./run.ts";
import type { Session } from "./session.ts";
import type { Options, Sampling, State } from "./state.ts";
import type { Store } from "./store.ts";
import { t } from "./texts.ts";
import { runsOf } from "./turn.ts";

export class Panel {
  readonly root: HTMLElement;
  readonly #store: Store<State>;
  readonly #sampling = new Map<string, Field>();
  readonly #methods: [MethodPanel, MethodPanel];

  constructor(store: Store<State>, session: Session) {
    this.#store = store;
    this.#methods = [new MethodPanel(store, 0), new MethodPanel(store, 1)];
    const panels = this.#methods.map((panel) => panel.root);
    const files = new Files(store, session).root;
    const parts = [this.#show(), this.#samplingFields(), ...panels, files, this.#version()];
    this.root = el(
      "aside",
      { id: "settings", class: "panel", "aria-label": t("settings") },
      ...parts,
    );
    store.watch(
      ({ options }) => options.sideBySide,
      (both) => {
        this.#methods[1].root.hidden = !both;
      },
    );
    store.watch(
      (state) => state,
      (state) => this.#complain(state),
    );
  }

  /** Says at the fields what the newest request was refused for. */
  #complain(state: Readonly<State>): void {
    const newest = state.turns[state.mode].at(-1);
    const failures = newest ? runsOf(newest, state).map((run) => run.failure) : [];
    for (const [pane, panel] of this.#methods.entries()) panel.complain(failures[pane] ?? null);
    const failure = failures.find((each): each is Failure => each != null);
    for (const [name, field] of this.#sampling) {
      field.complain(failure?.param === name ? failure.message : null);
    }
  }

  #version(): HTMLElement {
    const line = el("p", { class: "help" });
    this.#store.watch(
      ({ version }) => version,
      (version) => setText(line, version === "" ? "" : t("version", { version })),
    );
    return line;
  }

  #show(): HTMLElement {
    const order = choice(
      [
        { value: "", text: t("oneAfterOther") },
        { value: "once", text: t("atOnce") },
      ],
      "",
      (value) => this.#option({ atOnce: value === "once" }),
    );
    const how = new Field("order", t("order"), order, t("sharedMachine"));
    this.#store.watch(
      ({ options }) => options.sideBySide,
      (both) => {
        how.root.hidden = !both;
      },
    );
    return el(
      "fieldset",
      {},
      el("legend", {}, t("show")),
      this.#toggle("coloured", ""),
      this.#toggle("logprobs", t("logprobsHelp")),
      this.#toggle("sideBySide", ""),
      how.root,
      this.#system(),
    );
  }

  #system(): HTMLElement {
    const field = el("textarea", { rows: 2, placeholder: t("systemHint") });
    field.addEventListener("input", () => this.#store.update(() => ({ system: field.value })));
    const { root } = new Field("system", t("system"), field, "");
    this.#store.watch(
      ({ system }) => system,
      (system) => {
        if (field.value !== system) field.value = system;
      },
    );
    this.#store.watch(
      ({ mode }) => mode,
      (mode) => {
        root.hidden = mode !== "chat";
      },
    );
    return root;
  }

  #toggle(name: "coloured" | "logprobs" | "sideBySide", help: string): HTMLElement {
    const box = el("input", { type: "checkbox", id: name });
    box.addEventListener("change", () => this.#option({ [name]: box.checked }));
    this.#store.watch(
      ({ options }) => options[name],
      (value) => {
        box.checked = value;
      },
    );
    const described = help === "" ? null : el("p", { class: "help", id: `${name}-help` }, help);
    if (described) box.setAttribute("aria-describedby", described.id);
    return el("div", { class: "toggle" }, box, el("label", { for: name }, t(name)), described);
  }

  #samplingFields(): HTMLElement {
    const least = { type: "number", min: 0 };
    return el(
      "fieldset",
      {},
      el("legend", {}, t("sampling")),
      el(
        "div",
        { class: "pairs" },
        this.#number("temperature", { ...least, step: "any", placeholder: "1" }),
        this.#number("top_p", { ...least, step: "any", max: 1, placeholder: "1" }),
        this.#number("max_tokens", { ...least, step: 1, placeholder: t("whatFits") }),
        this.#number("seed", { ...least, step: 1, max: MOST_SEED, placeholder: t("drawn") }),
      ),
    );
  }

  #number(name: keyof Sampling, given: Record<string, unknown>): HTMLElement {
    const change = (value: string) =>
      this.#store.update(({ sampling }) => ({ sampling: { ...sampling, [name]: value } }));
    const control = input(given, this.#store.state.sampling[name], change);
    const field = new Field(name, t(name), control, "");
    this.#sampling.set(name, field);
    this.#store.watch(
      ({ sampling }) => sampling[name],
      (value) => {
        if (control.value !== value) control.value = value;
      },
    );
    return field.root;
  }

  #option(change: Partial<Options>): void {
    this.#store.update(({ options }) => ({ options: { ...options, ...change } }));
  }
}
