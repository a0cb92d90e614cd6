/** The panel of a pane's method, made of what `GET v1/methods` tells and of nothing else. */

import { controlOf, filled, underRule, unfilled, wantsNumber } from "./controls.ts";
import { button, el } from "./dom.ts";
import { choice, Field, input } from "./field.ts";
import type { Failure } from "./run.ts";
import type { Axis, Method, Methods, Parameter, Settings, State } from "./state.ts";
import type { Store } from "./store.ts";
import { promises, t } from "./texts.ts";

export class MethodPanel {
  readonly root = el("fieldset", { class: "method" });
  readonly #store: Store<State>;
  readonly #pane: number;
  readonly #fields = new Map<string, Field>();

  constructor(store: Store<State>, pane: number) {
    this.#store = store;
    this.#pane = pane;
    // It is built anew where another method shows other fields, not while the user types in one.
    store.watch(
      ({ methods, settings, options }) =>
        [
          methods?.methods.length,
          settings[pane]?.method,
          settings[pane]?.values.rule,
          options.sideBySide,
        ].join(),
      () => this.#build(),
    );
  }

  /** Says at its field what a request of this pane was refused for. */
  complain(failure: Failure | null): void {
    const name = failure?.param?.replace(/^speculation\./, "");
    for (const [each, field] of this.#fields) {
      field.complain(failure && each === name ? failure.message : null);
    }
  }

  #build(): void {
    const { methods, options } = this.#store.state;
    const method = this.#method(methods);
    const focused = this.root.contains(document.activeElement) ? document.activeElement?.id : null;
    this.#fields.clear();
    const legend = options.sideBySide
      ? t("methodOf", { pane: "AB"[this.#pane] ?? "" })
      : t("method");
    this.root.replaceChildren(el("legend", {}, legend));
    if (!methods || !method) return;
    this.root.append(...this.#head(methods, method));
    const parameters = method.parameters.map((each) => this.#parameter(each, methods));
    if (parameters.length > 0) this.root.append(el("h2", {}, t("parameters")), ...parameters);
    const axes = methods.axes.map((axis) => this.#axis(axis));
    const isOpen = methods.axes.some(({ name }) => this.#value(name) !== "");
    const list = el("details", { open: isOpen }, el("summary", {}, t("axes")), ...axes);
    const reset = button(t("reset"), () => this.#reset(), { class: "quiet" });
    this.root.append(list, reset);
    if (focused) document.getElementById(focused)?.focus();
  }

  #head(methods: Methods, method: Method): Node[] {
    const entries = methods.methods.map(({ name, allowed }) => ({
      value: name,
      text: allowed ? name : `${name} (${t("notServed")})`,
      disabled: !allowed,
    }));
    const select = choice(entries, method.name, (name) => this.#choose(name));
    const field = this.#field("method", t("method"), select, method.summary);
    const source = method.source === "" ? null : `${t("source")}: ${method.source}`;
    return [
      field.root,
      el("p", { class: "badges" }, promises(method).join(" · ")),
      ...(source ? [el("p", { class: "help" }, source)] : []),
    ];
  }

  #parameter(told: Parameter, methods: Methods): HTMLElement {
    const chosen = this.#value("rule") || this.#defaultOf("rule");
    const parameter = underRule(
      told,
      methods.rules.find(({ name }) => name === chosen),
    );
    const { name, range, help } = parameter;
    const control = this.#control(parameter);
    // A choice shows its values and its default by itself.
    const isChoice = control instanceof HTMLSelectElement;
    const ranged = isChoice ? "" : `. ${t("range", { range, value: parameter.default })}`;
    return this.#field(name, name, control, help + ranged).root;
  }

  #control(parameter: Parameter): HTMLElement {
    const { name } = parameter;
    const control = controlOf(parameter);
    const change = (value: string) => this.#set(name, value);
    if (control.is === "choice") {
      const none = { value: "", text: t("defaultIs", { value: parameter.default }) };
      const values = control.values.map((value) => ({ value, text: value }));
      return choice([none, ...values], this.#value(name), change);
    }
    const kind =
      control.is === "number" ? { type: "number", step: control.step } : { type: "text" };
    return input({ ...kind, placeholder: parameter.default }, this.#value(name), change);
  }

  /** An axis is a choice of forms; those that want a number have a field for it. */
  #axis(axis: Axis): HTMLElement {
    const { name, values } = axis;
    let { form, number } = unfilled(axis, this.#value(name));
    const change = () => {
      this.#set(name, filled(form, number));
      showNumber();
    };
    const entries = values.map((each) => ({ value: each.form, text: each.form }));
    const none = { value: "", text: t("defaultIs", { value: axis.default }) };
    const select = choice([none, ...entries], form, (chosen) => {
      form = chosen;
      change();
    });
    const amount = input(
      { type: "text", inputmode: "decimal", "aria-label": t("numberOf", { name }) },
      number,
      (typed) => {
        number = typed;
        change();
      },
    );
    const field = this.#field(name, name, select, axis.help, amount);
    const showNumber = () => {
      const chosen = values.find((each) => each.form === form);
      amount.hidden = !wantsNumber(form);
      amount.placeholder = chosen?.range ?? "";
      field.help(chosen?.help ? chosen.help : axis.help);
    };
    showNumber();
    return field.root;
  }

  #field(
    name: string,
    label: string,
    control: HTMLElement,
    help: string,
    more: HTMLElement | null = null,
  ): Field {
    const field = new Field(`pane-${this.#pane}-${name}`, label, control, help, more);
    this.#fields.set(name, field);
    return field;
  }

  #method(methods: Methods | null): Method | undefined {
    const chosen = this.#store.state.settings[this.#pane]?.method;
    return methods?.methods.find(({ name }) => name === chosen);
  }

  #defaultOf(parameter: string): string {
    const method = this.#method(this.#store.state.methods);
    return method?.parameters.find(({ name }) => name === parameter)?.default ?? "";
  }

  #value(name: string): string {
    return this.#store.state.settings[this.#pane]?.values[name] ?? "";
  }

  /** Another method takes other parameters, so only what is chosen of the axes is kept. */
  #choose(method: string): void {
    const axes = new Set(this.#store.state.methods?.axes.map(({ name }) => name));
    this.#update(({ values }) => ({
      method,
      values: Object.fromEntries(Object.entries(values).filter(([name]) => axes.has(name))),
    }));
  }

  #set(name: string, value: string): void {
    // Another rule has another range of alpha.
    const alpha = name === "rule" ? { alpha: "" } : {};
    this.#update(({ method, values }) => ({
      method,
      values: { ...values, ...alpha, [name]: value },
    }));
  }

  #reset(): void {
    const first = this.#store.state.methods?.methods.find(({ allowed }) => allowed);
    this.#update(() => ({ method: first?.name ?? "", values: {} }));
    this.#build();
  }

  #update(change: (settings: Settings) => Settings): void {
    this.#store.update(({ settings }) => ({
      settings: settings.map((each, at) => (at === this.#pane ? change(each) : each)),
    }));
  }
}
