/** Where the user writes. */

import { button, el, setText } from "./dom.ts";
import type { Session } from "./session.ts";
import type { State, TextFile } from "./state.ts";
import type { Store } from "./store.ts";
import { number, t } from "./texts.ts";
import { isBusy } from "./turn.ts";

/** The server takes bodies up to 4 MiB, in which a file may take twice its size. */
const MOST_FILE_BYTES = 2_000_000;

export class Composer {
  readonly #field = el("textarea", { id: "message", rows: 2, dir: "auto" });
  readonly #label = el("label", { for: "message", class: "hidden" });
  readonly #send = el("button", { type: "submit", class: "primary" });
  readonly #files = el("ul", { class: "files" });
  readonly #problem = el("p", { class: "error", role: "alert", hidden: true });
  readonly root: HTMLFormElement;
  readonly #store: Store<State>;
  readonly #session: Session;
  #attached: TextFile[] = [];

  constructor(store: Store<State>, session: Session) {
    this.#store = store;
    this.#session = session;
    const picker = el("input", { type: "file", multiple: true, hidden: true });
    picker.addEventListener("change", () => {
      void this.#attach([...(picker.files ?? [])]);
      picker.value = "";
    });
    const attach = button(t("attach"), () => picker.click());
    const buttons = el("div", { class: "row" }, attach, picker, this.#send);
    const parts = [this.#label, this.#files, this.#field, this.#problem, buttons];
    this.root = el("form", { class: "composer" }, ...parts);
    this.root.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#field.addEventListener("keydown", (event) => this.#onKey(event));
    store.watch(
      ({ mode }) => mode,
      (mode) => this.#showMode(mode === "chat"),
    );
    store.watch(isBusy, (busy) => this.#showBusy(busy));
  }

  #showMode(isChat: boolean): void {
    this.#field.rows = isChat ? 2 : 4;
    this.#field.placeholder = isChat ? t("messageHint") : t("promptHint");
    setText(this.#label, isChat ? t("message") : t("prompt"));
  }

  #showBusy(busy: boolean): void {
    setText(this.#send, busy ? t("stop") : t("send"));
    this.#send.classList.toggle("stop", busy);
  }

  #submit(): void {
    if (isBusy(this.#store.state)) {
      this.#session.stop();
      return;
    }
    const text = this.#field.value;
    const isChat = this.#store.state.mode === "chat";
    if (text.trim() === "" && this.#attached.length === 0 && isChat) return;
    this.#session.send(text, this.#attached);
    this.#field.value = "";
    this.#attached = [];
    this.#showFiles();
  }

  /** A message is a line or two, so Enter sends it; a prompt is a text, so there Enter is a line. */
  #onKey(event: KeyboardEvent): void {
    if (event.key === "Escape" && isBusy(this.#store.state)) this.#session.stop();
    if (event.key !== "Enter" || event.isComposing) return;
    const isChat = this.#store.state.mode === "chat";
    const sends = event.ctrlKey || event.metaKey || (isChat && !event.shiftKey);
    if (!sends) return;
    event.preventDefault();
    if (!isBusy(this.#store.state)) this.#submit();
  }

  async #attach(files: File[]): Promise<void> {
    this.#say("");
    for (const file of files) {
      const { name } = file;
      if (file.size > MOST_FILE_BYTES) this.#say(t("tooLarge", { name }));
      else {
        const text = await textOf(file);
        if (text === null) this.#say(t("notText", { name }));
        else this.#attached = [...this.#attached, { name, text }];
      }
    }
    this.#showFiles();
  }

  #say(problem: string): void {
    this.#problem.hidden = problem === "";
    setText(this.#problem, problem);
  }

  #showFiles(): void {
    const items = this.#attached.map((file) => {
      const { name, text } = file;
      const remove = button("×", () => this.#remove(file), { "aria-label": t("remove", { name }) });
      return el("li", {}, t("attached", { name, size: number(text.length) }), remove);
    });
    this.#files.replaceChildren(...items);
    this.#files.hidden = items.length === 0;
  }

  #remove(file: TextFile): void {
    this.#attached = this.#attached.filter((each) => each !== file);
    this.#showFiles();
    this.#field.focus();
  }
}

/** Returns the text of a file, or null if it is not text. */
async function textOf(file: File): Promise<string | null> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.includes("\u0000") ? null : text;
  } catch {
    return null;
  }
}
