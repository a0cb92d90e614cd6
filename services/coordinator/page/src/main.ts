/** Puts the page together. */

import { Api } from "./api.ts";
import { Card } from "./card.ts";
import { Composer } from "./composer.ts";
import { ConversationView } from "./conversation.ts";
import { button, el, setText } from "./dom.ts";
import { Header } from "./header.ts";
import { Legend } from "./legend.ts";
import { Login } from "./login.ts";
import { MarkdownView } from "./markdown.ts";
import { Notices } from "./notices.ts";
import { Panel } from "./panel.ts";
import { Player } from "./player.ts";
import { Served } from "./served.ts";
import { Session } from "./session.ts";
import { FIRST_STATE, type State } from "./state.ts";
import { Store } from "./store.ts";
import { chooseLanguage, t } from "./texts.ts";

// What the HTML has by itself is painted first, and then what scripts build.
requestAnimationFrame(() => window.setTimeout(start));

/** Builds the page, and asks what is served. */
function start(): void {
  document.documentElement.lang = chooseLanguage(navigator.language);

  // Frames do not come while a page is hidden: what came then is shown when it is seen again.
  const store = new Store<State>(FIRST_STATE, (run) => requestAnimationFrame(run));
  const login = new Login(store);
  const api = new Api(login.ask, () => t("unreachable"));
  const served = new Served(store, api);
  const session = new Session(store, api);
  const card = new Card();

  const toggle = button(
    t("settings"),
    () => showSettings(toggle, !document.body.classList.contains("settings")),
    {
      class: "toggle-settings",
      "aria-controls": "settings",
      "aria-expanded": "false",
    },
  );
  const panel = new Panel(store, session);
  const player = new Player(store);
  const conversation = new ConversationView(store, card, {
    scrub: (run, rounds) => player.scrub(run, rounds),
    toggle: (run) => player.toggle(run),
    slower: (times) => player.slower(times),
    retry: (turn) => session.retry(turn),
    measure: (run) => void session.measureAlone(run),
    pin: (seed) =>
      store.update(({ sampling }) => ({ sampling: { ...sampling, seed: String(seed) } })),
    startEdit: (turn) => store.update(() => ({ editing: turn?.id ?? null })),
    edit: (turn, text) => session.edit(turn, text),
  });

  const talk = el(
    "div",
    { class: "talk" },
    new Notices(store, () => void served.load()).root,
    new Legend(store).root,
    conversation.root,
    new Composer(store, session).root,
  );
  document.body.replaceChildren(
    new Header(store, session, (model) => void served.choose(model), toggle).root,
    el("main", {}, talk, panel.root, card.root),
    login.root,
  );

  store.watch(
    ({ options }) => options.sideBySide,
    (wide) => {
      talk.classList.toggle("wide", wide);
    },
  );
  void served.load();
  // The first Markdown compiles its parser: better now than in the frame that shows the first token.
  window.setTimeout(() => new MarkdownView().show("*ready*", true), 500);
}

/** On narrow windows the settings take the conversation's place. */
function showSettings(toggle: Element, open: boolean): void {
  document.body.classList.toggle("settings", open);
  toggle.setAttribute("aria-expanded", String(open));
  setText(toggle, open ? t("close") : t("settings"));
  toggle.setAttribute("aria-label", open ? t("closeSettings") : t("settings"));
}
