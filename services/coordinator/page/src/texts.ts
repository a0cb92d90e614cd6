/** Every text of the page, in English and German. What methods are comes from the server, in English. */

const TEXTS = {
  title: ["Outrider", "Outrider"],
  tagline: ["speculative decoding, made visible", "spekulatives Dekodieren, sichtbar gemacht"],
  model: ["Model", "Modell"],
  mode: ["Mode", "Modus"],
  chat: ["Chat", "Chat"],
  complete: ["Complete", "Ergänzen"],
  noChat: [
    "This model has no chat template, so it cannot chat: it continues texts.",
    "Dieses Modell hat keine Chat-Vorlage und kann darum nicht chatten: Es setzt Texte fort.",
  ],
  settings: ["Settings", "Einstellungen"],
  close: ["Close", "Schließen"],
  closeSettings: ["Close settings", "Einstellungen schließen"],
  newConversation: ["New", "Neu"],
  export: ["Export", "Exportieren"],
  import: ["Import", "Importieren"],
  importFailed: [
    "{name} is not a conversation that this page exported: choose another file.",
    "{name} ist kein von dieser Seite exportiertes Gespräch: Bitte eine andere Datei wählen.",
  ],
  conversation: ["Conversation", "Gespräch"],
  emptyChat: [
    "Ask something. Each token of the answer shows who wrote it.",
    "Stellen Sie eine Frage. Jedes Token der Antwort zeigt, wer es geschrieben hat.",
  ],
  emptyComplete: [
    "Begin a text. Each token of its continuation shows who wrote it.",
    "Beginnen Sie einen Text. Jedes Token der Fortsetzung zeigt, wer es geschrieben hat.",
  ],
  you: ["You", "Sie"],
  prompt: ["Prompt", "Anfang"],
  message: ["Message", "Nachricht"],
  messageHint: [
    "Enter sends, Shift+Enter begins a line",
    "Enter sendet, Umschalt+Enter beginnt eine Zeile",
  ],
  promptHint: [
    "A text to continue: Ctrl+Enter sends",
    "Ein Text zum Fortsetzen: Strg+Enter sendet",
  ],
  system: ["System prompt", "Systemnachricht"],
  systemHint: ["How the model should answer", "Wie das Modell antworten soll"],
  send: ["Send", "Senden"],
  stop: ["Stop", "Anhalten"],
  attach: ["Attach text file", "Textdatei anhängen"],
  attached: ["Attached: {name}, {size} characters", "Angehängt: {name}, {size} Zeichen"],
  remove: ["Remove {name}", "{name} entfernen"],
  notText: [
    "{name} is not a text file in UTF-8: attach one that is.",
    "{name} ist keine Textdatei in UTF-8: Bitte eine solche anhängen.",
  ],
  tooLarge: [
    "{name} is larger than 2 MB: attach a part of it.",
    "{name} ist größer als 2 MB: Bitte einen Teil davon anhängen.",
  ],
  edit: ["Edit", "Bearbeiten"],
  editText: ["Edit what you wrote", "Geschriebenes bearbeiten"],
  saveEdit: ["Send anew", "Neu senden"],
  cancel: ["Cancel", "Abbrechen"],
  retry: ["Retry", "Wiederholen"],
  copy: ["Copy", "Kopieren"],
  copied: ["Copied", "Kopiert"],
  answer: ["Answer", "Antwort"],
  answerOf: ["Answer {pane}", "Antwort {pane}"],
  reasoning: ["Reasoning", "Überlegung"],
  waiting: ["Waiting for the first token …", "Warten auf das erste Token …"],
  queued: ["Comes after the other pane …", "Kommt nach der anderen Seite …"],
  stopped: ["Stopped: the text so far is kept.", "Angehalten: Der Text bis hier bleibt."],
  cut: [
    "Ended at max tokens ({count}): raise them for more.",
    "Endet bei der größten Tokenzahl ({count}): Erhöhen Sie diese für mehr.",
  ],
  emptyAnswer: [
    "The model ended at once, without any text.",
    "Das Modell endete sofort, ohne Text.",
  ],
  unreachable: [
    "The connection to the server was lost. What came is kept; retry when it is back.",
    "Die Verbindung zum Server ging verloren. Was kam, bleibt; wiederholen Sie, wenn er wieder da ist.",
  ],
  failedField: ["{field}: {message}", "{field}: {message}"],
  withoutDrafter: [
    "Went on without the drafter: {reason}",
    "Ging ohne den Drafter weiter: {reason}",
  ],
  seedUsed: ["Seed {seed}", "Seed {seed}"],
  pin: ["Pin", "Festhalten"],
  pinSeed: ["Use seed {seed} from now on", "Seed {seed} von nun an verwenden"],
  pinned: ["Pinned", "Festgehalten"],
  notLossless: ["not lossless", "nicht verlustfrei"],
  lossless: ["lossless", "verlustfrei"],
  notReproducible: ["not reproducible", "nicht reproduzierbar"],
  reproducible: ["reproducible", "reproduzierbar"],
  show: ["Show", "Anzeige"],
  coloured: ["Colour tokens by origin", "Tokens nach Herkunft färben"],
  logprobs: ["Log probabilities", "Logarithmische Wahrscheinlichkeiten"],
  logprobsHelp: [
    "The target's own, with five alternatives; not all methods give them",
    "Die des Zielmodells, mit fünf Alternativen; nicht alle Methoden liefern sie",
  ],
  sideBySide: ["Side by side", "Nebeneinander"],
  order: ["Send", "Senden"],
  oneAfterOther: ["one after the other", "nacheinander"],
  atOnce: ["at once", "zugleich"],
  sharedMachine: [
    "At once they share the machine, and each is slower.",
    "Zugleich teilen sie sich die Maschine, und jede Seite ist langsamer.",
  ],
  sampling: ["Sampling", "Sampling"],
  temperature: ["Temperature", "Temperatur"],
  top_p: ["Top-p", "Top-p"],
  max_tokens: ["Max tokens", "Größte Tokenzahl"],
  seed: ["Seed", "Seed"],
  drawn: ["drawn anew", "neu gezogen"],
  whatFits: ["what fits", "was passt"],
  method: ["Method", "Methode"],
  methodOf: ["Method of pane {pane}", "Methode der Seite {pane}"],
  parameters: ["Parameters", "Parameter"],
  axes: ["Axes", "Achsen"],
  source: ["Source", "Quelle"],
  notServed: ["not served here", "hier nicht angeboten"],
  default: ["default", "Vorgabe"],
  defaultIs: ["default: {value}", "Vorgabe: {value}"],
  range: ["{range}; default {value}", "{range}; Vorgabe {value}"],
  numberOf: ["{name}: number", "{name}: Zahl"],
  reset: ["Reset to defaults", "Auf Vorgaben zurücksetzen"],
  legend: ["Who wrote a token", "Wer ein Token schrieb"],
  accepted: ["accepted", "angenommen"],
  acceptedHelp: ["drafted, and kept by the target", "entworfen und vom Zielmodell behalten"],
  recovered: ["recovered", "ersetzt"],
  recoveredHelp: [
    "the target's, in place of a refused draft token",
    "vom Zielmodell, statt eines verworfenen Entwurfs",
  ],
  bonus: ["bonus", "Bonus"],
  bonusHelp: [
    "the target's, after a block that was accepted whole",
    "vom Zielmodell, nach einem ganz angenommenen Block",
  ],
  target: ["target", "Zielmodell"],
  targetHelp: ["the target's, decoding alone", "vom Zielmodell allein"],
  deferred: ["deferred", "überlassen"],
  deferredHelp: [
    "the target's, because a deferral rule handed over",
    "vom Zielmodell, weil eine Regel ihm die Stelle überließ",
  ],
  tokensHelp: [
    "Tokens of the answer. Arrow keys move between them, up and down between rounds.",
    "Tokens der Antwort. Pfeiltasten wechseln zwischen ihnen, auf und ab zwischen Runden.",
  ],
  longToken: ["… ({count} characters)", "… ({count} Zeichen)"],
  token: ["Token", "Token"],
  position: ["Position", "Position"],
  origin: ["Origin", "Herkunft"],
  logprob: ["Log probability", "Log-Wahrscheinlichkeit"],
  round: ["Round", "Runde"],
  draftedBy: ["Accepted from", "Angenommen von"],
  roundCounts: [
    "{drafted} drafted, {accepted} accepted",
    "{drafted} entworfen, {accepted} angenommen",
  ],
  draftTime: ["Draft", "Entwurf"],
  verifyTime: ["Verify", "Prüfung"],
  timeline: ["Timeline", "Zeitleiste"],
  timelineHelp: [
    "{count} rounds; round {round}: {drafted} drafted, {accepted} accepted",
    "{count} Runden; Runde {round}: {drafted} entworfen, {accepted} angenommen",
  ],
  noRounds: [
    "No rounds were told: the target decoded alone, as with draft_len auto where drafts do not pay, " +
      "or the answer came whole.",
    "Keine Runden gemeldet: Das Zielmodell schrieb allein, wie bei draft_len auto, wo Entwürfe sich " +
      "nicht lohnen, oder die Antwort kam im Ganzen.",
  ],
  laneDraft: ["draft", "Entwurf"],
  laneWire: ["wire, queue", "Leitung"],
  laneVerify: ["verify", "Prüfung"],
  laneAccept: ["accept", "Annahme"],
  scrub: ["Show the text up to round", "Text zeigen bis Runde"],
  roundAt: ["Round {round} of {count}", "Runde {round} von {count}"],
  play: ["Play", "Abspielen"],
  pause: ["Pause", "Pause"],
  speed: ["Speed", "Tempo"],
  asItCame: ["as it came", "wie es kam"],
  slower: ["{times} times slower", "{times}-mal langsamer"],
  details: ["Timeline and numbers", "Zeitleiste und Zahlen"],
  firstToken: ["first token", "erstes Token"],
  perSecond: ["tokens a second", "Tokens je Sekunde"],
  acceptance: ["acceptance", "Annahme"],
  perRound: ["tokens a round", "Tokens je Runde"],
  perToken: ["bytes a token", "Bytes je Token"],
  tokens: ["tokens", "Tokens"],
  cached: ["cached prompt tokens", "Prompt-Tokens im Cache"],
  byPosition: ["Acceptance by position in the draft", "Annahme nach Position im Entwurf"],
  positionAt: [
    "position {position}: {percent} of {count} drafts",
    "Position {position}: {percent} von {count} Entwürfen",
  ],
  measureAlone: ["Measure the target alone", "Zielmodell allein messen"],
  measuring: ["Measuring the target alone …", "Zielmodell allein wird gemessen …"],
  ratio: [
    "{speed} tokens a second against {alone} of the target alone: {ratio} times.",
    "{speed} Tokens je Sekunde gegen {alone} des Zielmodells allein: das {ratio}-Fache.",
  ],
  sameText: ["The texts are identical.", "Die Texte sind identisch."],
  otherText: ["The texts differ.", "Die Texte unterscheiden sich."],
  differAt: [
    "The texts differ from token {position} on, marked in both.",
    "Die Texte unterscheiden sich ab Token {position}, in beiden markiert.",
  ],
  differs: ["first difference", "erster Unterschied"],
  aloneFailed: [
    "The target alone failed: {message}",
    "Das Zielmodell allein schlug fehl: {message}",
  ],
  aloneStopped: ["The measurement was stopped.", "Die Messung wurde angehalten."],
  continuesFirst: [
    "The conversation goes on with answer A.",
    "Das Gespräch geht mit Antwort A weiter.",
  ],
  login: ["A token is needed", "Ein Token wird gebraucht"],
  loginHelp: [
    "This server wants a token of its clients. It is kept in this page's memory only.",
    "Dieser Server verlangt ein Token. Es bleibt nur im Speicher dieser Seite.",
  ],
  loginWrong: [
    "That token is unknown here. Try another.",
    "Dieses Token ist hier unbekannt. Bitte ein anderes.",
  ],
  loginToken: ["Token", "Token"],
  signIn: ["Use token", "Token verwenden"],
  version: ["Outrider {version}", "Outrider {version}"],
} as const satisfies Record<string, readonly [string, string]>;

export type TextKey = keyof typeof TEXTS;

let language: 0 | 1 = 0;

/** Chooses the language by what a browser prefers, and returns its tag. */
export function chooseLanguage(preferred: string): "en" | "de" {
  language = preferred.toLowerCase().startsWith("de") ? 1 : 0;
  return language === 1 ? "de" : "en";
}

/** Returns a text, with `given` in place of the names in braces. */
export function t(key: TextKey, given: Record<string, string | number> = {}): string {
  return TEXTS[key][language].replace(/\{(\w+)\}/g, (_, name) => String(given[name] ?? ""));
}

/** Returns what a method promises of its output. */
export function promises(of: { lossless: boolean; reproducible: boolean }): string[] {
  return [
    of.lossless ? t("lossless") : t("notLossless"),
    of.reproducible ? t("reproducible") : t("notReproducible"),
  ];
}

/** Returns a number as the language writes it. */
export function number(value: number, digits = 0): string {
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return value.toLocaleString(language === 1 ? "de" : "en", options);
}

export function percent(share: number): string {
  return `${number(share * 100)} %`;
}

/** Returns a time in a unit that suits it. */
export function time(us: number): string {
  if (us < 1000) return `${number(us)} µs`;
  return us < 1e6 ? `${number(us / 1e3, 1)} ms` : `${number(us / 1e6, 2)} s`;
}
