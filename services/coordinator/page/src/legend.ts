/** What the colours of tokens mean. */

import { el } from "./dom.ts";
import { ORIGINS } from "./run.ts";
import type { State } from "./state.ts";
import type { Store } from "./store.ts";
import { t } from "./texts.ts";

export class Legend {
  readonly root: HTMLElement;

  constructor(store: Store<State>) {
    const entries = ORIGINS.map((origin) =>
      el(
        "li",
        { title: t(`${origin}Help`) },
        el("span", { class: `token ${origin}` }, t(origin)),
        el("span", { class: "hidden" }, `: ${t(`${origin}Help`)}`),
      ),
    );
    this.root = el("ul", { class: "legend coloured", "aria-label": t("legend") }, ...entries);
    store.watch(
      ({ options }) => options.coloured,
      (coloured) => {
        this.root.hidden = !coloured;
      },
    );
  }
}
