/** A labelled control with its help, and what the server found wrong with its value. */

import { el, setText } from "./dom.ts";

export class Field {
  readonly root: HTMLElement;
  readonly #control: HTMLElement;
  readonly #help: HTMLElement;
  readonly #problem = el("p", { class: "error", hidden: true });

  /** `more` stands beside the control, as a number beside the form that wants it. */
  constructor(
    id: string,
    label: string,
    control: HTMLElement,
    help: string,
    more: HTMLElement | null = null,
  ) {
    control.id = id;
    this.#control = control;
    this.#help = el("p", { id: `${id}-help`, class: "help" }, help);
    this.#problem.id = `${id}-problem`;
    control.setAttribute("aria-describedby", `${id}-help ${id}-problem`);
    const name = el("label", { for: id }, label);
    const controls = el("div", { class: "control" }, control, more);
    this.root = el("div", { class: "field" }, name, controls, this.#help, this.#problem);
  }

  /** Says what is wrong with its value; null is nothing. */
  complain(problem: string | null): void {
    this.#problem.hidden = problem === null;
    setText(this.#problem, problem ?? "");
    if (problem === null) this.#control.removeAttribute("aria-invalid");
    else this.#control.setAttribute("aria-invalid", "true");
  }

  help(text: string): void {
    setText(this.#help, text);
  }
}

/** Returns a select with an entry for each value; the texts are the values where none are given. */
export function choice(
  entries: { value: string; text: string; disabled?: boolean }[],
  value: string,
  onchange: (value: string) => void,
): HTMLSelectElement {
  const select = el("select", { onchange: () => onchange(select.value) });
  for (const { text, ...entry } of entries) select.append(el("option", entry, text));
  select.value = value;
  return select;
}

/** Returns a field for a line of text, or for a number. */
export function input(
  given: Record<string, unknown>,
  value: string,
  oninput: (value: string) => void,
): HTMLInputElement {
  const control = el("input", {
    autocomplete: "off",
    spellcheck: "false",
    ...given,
    oninput: () => oninput(control.value),
  });
  control.value = value;
  return control;
}
