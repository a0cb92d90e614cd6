/** The dialog that asks for a token. */

import { button, el, setText } from "./dom.ts";
import type { State } from "./state.ts";
import type { Store } from "./store.ts";
import { t } from "./texts.ts";

export class Login {
  readonly root: HTMLDialogElement;
  readonly #store: Store<State>;
  readonly #field = el("input", {
    id: "token",
    type: "password",
    autocomplete: "off",
    required: true,
  });
  readonly #wrong = el("p", { class: "error", role: "alert" });
  #answer: ((token: string | null) => void) | null = null;

  constructor(store: Store<State>) {
    this.#store = store;
    const use = el("button", { type: "submit", class: "primary" }, t("signIn"));
    const form = el(
      "form",
      {},
      el("h2", { id: "login-title" }, t("login")),
      el("p", { id: "login-help" }, t("loginHelp")),
      el("label", { for: "token" }, t("loginToken")),
      this.#field,
      this.#wrong,
      el(
        "div",
        { class: "row" },
        button(t("cancel"), () => this.#give(null)),
        use,
      ),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#give(this.#field.value.trim());
    });
    const labelled = { "aria-labelledby": "login-title", "aria-describedby": "login-help" };
    this.root = el("dialog", labelled, form);
    // Escape is a no, too. The event of closing would come late, when another token may be asked for already.
    this.root.addEventListener("cancel", () => this.#give(null));
    store.watch(
      ({ login }) => login,
      (login) => this.#show(login),
    );
  }

  /** Asks for a token; null is the user's no. */
  ask = (wrong: boolean): Promise<string | null> => {
    this.#store.update(() => ({ login: { wrong } }));
    return new Promise((resolve) => {
      this.#answer = resolve;
    });
  };

  #give(token: string | null): void {
    const answer = this.#answer;
    this.#answer = null;
    if (answer) this.#store.update(() => ({ login: null }));
    answer?.(token);
  }

  #show(login: State["login"]): void {
    if (!login) {
      this.root.close();
      return;
    }
    setText(this.#wrong, login.wrong ? t("loginWrong") : "");
    this.#field.value = "";
    if (!this.root.open) this.root.showModal();
    this.#field.focus();
  }
}
