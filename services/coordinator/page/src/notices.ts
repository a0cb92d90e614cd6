/** What is said above the conversation: why there is no chat, and what failed outside of answers. */

import { button, el, setText } from "./dom.ts";
import type { State } from "./state.ts";
import type { Store } from "./store.ts";
import { t } from "./texts.ts";

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
