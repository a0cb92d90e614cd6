/** The top of the page: the model and the mode. */

import { button, el } from "./dom.ts";
import { choice } from "./field.ts";
import type { Session } from "./session.ts";
import type { Mode, State } from "./state.ts";
import type { Store } from "./store.ts";
import { t } from "./texts.ts";

export class Header {
  readonly root: HTMLElement;
  readonly #store: Store<State>;
  readonly #model = el("select", { id: "model" });
  readonly #modes: HTMLElement;

  constructor(
    store: Store<State>,
    session: Session,
    choose: (model: string) => void,
    toggleSettings: HTMLButtonElement,
  ) {
    this.#store = store;
    this.#model.addEventListener("change", () => choose(this.#model.value));
    this.#modes = el(
      "div",
      { class: "modes", role: "radiogroup", "aria-label": t("mode") },
      ...(["chat", "complete"] as const).flatMap((mode) => this.#mode(mode)),
    );
    this.root = el(
      "header",
      { class: "top" },
      el("h1", {}, t("title"), el("span", {}, t("tagline"))),
      el("div", { class: "chosen" }, el("label", { for: "model" }, t("model")), this.#model),
      this.#modes,
      el("div", { class: "row" }, this.#clear(session), toggleSettings),
    );
    store.watch(
      ({ models }) => models,
      (models) => this.#showModels(models),
    );
  }

  #clear(session: Session): HTMLElement {
    const clear = button(t("newConversation"), () => session.clear());
    this.#store.watch(
      ({ turns, mode }) => turns[mode].length === 0,
      (isEmpty) => {
        clear.disabled = isEmpty;
      },
    );
    return clear;
  }

  #showModels(models: string[]): void {
    const entries = models.map((name) => ({ value: name, text: name }));
    const select = choice(entries, this.#store.state.model, () => {});
    this.#model.replaceChildren(...select.children);
    this.#model.value = this.#store.state.model;
  }

  #mode(mode: Mode): HTMLElement[] {
    const radio = el("input", { type: "radio", name: "mode", id: `mode-${mode}`, value: mode });
    radio.addEventListener("change", () => this.#store.update(() => ({ mode, editing: null })));
    this.#store.watch(
      (state) => state.mode,
      (chosen) => {
        radio.checked = chosen === mode;
      },
    );
    this.#store.watch(
      ({ canChat }) => canChat,
      (canChat) => {
        radio.disabled = mode === "chat" && canChat === false;
      },
    );
    return [radio, el("label", { for: radio.id }, t(mode))];
  }
}
