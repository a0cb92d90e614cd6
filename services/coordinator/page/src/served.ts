/** What the server serves: its models, whether they can chat, and its methods. */

import { type Api, failureOf } from "./api.ts";
import type { Methods, State } from "./state.ts";
import type { Store } from "./store.ts";

export class Served {
  readonly #store: Store<State>;
  readonly #api: Api;

  constructor(store: Store<State>, api: Api) {
    this.#store = store;
    this.#api = api;
  }

  /** Asks what is served, and begins with the first of each. */
  async load(): Promise<void> {
    await this.#orSay(async () => {
      const [models, canChat, methods, { version }] = await Promise.all([
        this.#api.get<{ data: { id: string }[] }>("v1/models"),
        this.#canChat(""),
        this.#api.get<Methods>("v1/methods"),
        this.#api.get<{ version: string }>("version"),
      ]);
      const names = models.data.map(({ id }) => id);
      const method = methods.methods.find(({ allowed }) => allowed)?.name ?? "";
      this.#store.update(({ settings }) => ({
        models: names,
        model: names[0] ?? "",
        methods,
        version,
        settings: settings.map((each) => ({ ...each, method })),
      }));
      this.#showChat(canChat);
    });
  }

  /** Chooses a model. */
  async choose(model: string): Promise<void> {
    this.#store.update(() => ({ model }));
    await this.#orSay(async () => {
      const canChat = await this.#canChat(model);
      // Meanwhile another may have been chosen.
      if (this.#store.state.model === model) this.#showChat(canChat);
    });
  }

  /** Asks whether a model, the first one if it is empty, has a chat template. */
  async #canChat(model: string): Promise<boolean> {
    const path = `tokenizer_info?model=${encodeURIComponent(model)}`;
    const { chat_template } = await this.#api.get<{ chat_template?: string | null }>(path);
    return Boolean(chat_template);
  }

  #showChat(canChat: boolean): void {
    this.#store.update(({ mode }) => ({
      canChat,
      mode: canChat ? mode : "complete",
      failure: null,
    }));
  }

  async #orSay(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.#store.update(() => ({ failure: failureOf(error) }));
    }
  }
}
