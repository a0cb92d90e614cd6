/** The top of the page: the model, the mode, and the conversation as a file. */

import { button, el, setText } from "./dom.ts";
import { choice } from "./field.ts";
import type { Session } from "./session.ts";
import type { Mode, State } from "./state.ts";
import type { Store } from "./store.ts";
import { t } from "./texts.ts";
import { exported, imported, saveFile } from "./transfer.ts";

export class Header {
  readonly root: HTMLElement;
  readonly #store: Store<State>;
  readonly #session: Session;
  readonly #model = el("select", { id: "model" });
  readonly #modes: HTMLElement;

  constructor(store: Store<State>, session: Session, toggleSettings: HTMLButtonElement) {
    this.#store = store;
    this.#session = session;
    this.#model.addEventListener("change", () =>
      store.update(() => ({ model: this.#model.value })),
    );
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
      el("div", { class: "row" }, ...this.#files(), toggleSettings),
    );
    store.watch(
      ({ models }) => models,
      (models) => this.#showModels(models),
    );
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

  #files(): HTMLElement[] {
    const picker = el("input", { type: "file", accept: ".json,application/json", hidden: true });
    picker.addEventListener("change", () => {
      const [file] = picker.files ?? [];
      if (file) void this.#import(file);
      picker.value = "";
    });
    const save = () => saveFile("outrider-conversation.json", exported(this.#store.state));
    const clear = button(t("newConversation"), () => this.#session.clear());
    const out = button(t("export"), save);
    this.#store.watch(
      ({ turns, mode }) => turns[mode].length === 0,
      (isEmpty) => {
        clear.disabled = isEmpty;
        out.disabled = isEmpty;
      },
    );
    return [clear, out, button(t("import"), () => picker.click()), picker];
  }

  async #import(file: File): Promise<void> {
    this.#session.stop();
    const text = await file.text();
    const change = imported(text, this.#store.state, () => this.#session.nextTurn());
    const message = t("importFailed", { name: file.name });
    const failure = { message, param: null, status: null };
    this.#store.update(() => (change ? { ...change, failure: null } : { failure }));
  }
}

/** What the page says above the conversation: why there is no chat, and what failed outside of answers. */
export class Notices {
  readonly #noChat = el("p", { class: "notice" }, t("noChat"));
  readonly #failure = el("p", { class: "error", role: "alert" });
  readonly #retry: HTMLButtonElement;
  readonly root: HTMLElement;

  constructor(store: Store<State>, reload: () => void) {
    this.#retry = button(t("retry"), reload);
    const failed = el("div", { class: "failed" }, this.#failure, this.#retry);
    this.root = el("div", { class: "notices" }, this.#noChat, failed);
    store.watch(
      ({ canChat }) => canChat,
      (canChat) => {
        this.#noChat.hidden = canChat !== false;
      },
    );
    store.watch(
      ({ failure }) => failure,
      (failure) => {
        failed.hidden = failure === null;
        // What the user picked is picked again; what was not loaded is loaded again.
        this.#retry.hidden = store.state.models.length > 0;
        setText(this.#failure, failure?.message ?? "");
      },
    );
  }
}
