/** The buttons that save a conversation as a file, and open one. */

import { button, el } from "./dom.ts";
import type { Session } from "./session.ts";
import type { State } from "./state.ts";
import type { Store } from "./store.ts";
import { t } from "./texts.ts";
import { exported, imported } from "./transfer.ts";

export class Files {
  readonly root: HTMLElement;
  readonly #store: Store<State>;
  readonly #session: Session;

  constructor(store: Store<State>, session: Session) {
    this.#store = store;
    this.#session = session;
    const picker = el("input", {
      type: "file",
      accept: ".json,application/json",
      hidden: true,
      "aria-label": t("import"),
    });
    picker.addEventListener("change", () => {
      const [file] = picker.files ?? [];
      if (file) void this.#import(file);
      picker.value = "";
    });
    const save = button(t("export"), () =>
      saveFile("outrider-conversation.json", exported(store.state)),
    );
    store.watch(
      ({ turns, mode }) => turns[mode].length === 0,
      (isEmpty) => {
        save.disabled = isEmpty;
      },
    );
    const open = button(t("import"), () => picker.click());
    const row = el("div", { class: "row" }, save, open, picker);
    this.root = el("fieldset", {}, el("legend", {}, t("conversation")), row);
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

/** Gives the user a text as a file. */
function saveFile(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  el("a", { href: url, download: name }).click();
  // A download that has begun keeps the text; until then it needs the address.
  window.setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
