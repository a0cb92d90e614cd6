/** Which control suits a parameter or an axis, by what the server says of it. */

import type { Axis, Parameter, Rule } from "./state.ts";

export type Control =
  | { is: "choice"; values: string[] }
  | { is: "number"; step: "1" | "any" }
  | { is: "text" };

/** Returns the control of a parameter. A kind that is not known here is typed as text. */
export function controlOf({ type, range }: Parameter): Control {
  if (type === "boolean") return { is: "choice", values: ["true", "false"] };
  if (type === "name") return { is: "choice", values: range.split(",").map((name) => name.trim()) };
  if (type === "integer") return { is: "number", step: "1" };
  return type === "number" ? { is: "number", step: "any" } : { is: "text" };
}

/** Returns a parameter with the range and default that the rule chosen gives its alpha. */
export function underRule(parameter: Parameter, rule: Rule | undefined): Parameter {
  if (parameter.name !== "alpha" || !rule) return parameter;
  const range = `${rule.least_alpha} to ${rule.most_alpha}`;
  return { ...parameter, range, default: String(rule.default_alpha) };
}

/** What stands for a number in the form of an axis's value. */
const PLACE = /[A-Z]+/;

/** Whether a form wants a number. */
export function wantsNumber(form: string): boolean {
  return PLACE.test(form);
}

/** Returns the value that a form and a number make; empty as long as the number is. */
export function filled(form: string, number: string): string {
  if (!wantsNumber(form)) return form;
  return number.trim() === "" ? "" : form.replace(PLACE, number.trim());
}

/** Returns the form that made a value, and the number in it. */
export function unfilled(axis: Axis, value: string): { form: string; number: string } {
  if (axis.values.some(({ form }) => form === value)) return { form: value, number: "" };
  for (const { form } of axis.values.filter(({ form }) => wantsNumber(form))) {
    const [before = "", after = ""] = form.split(PLACE);
    const number = value.slice(before.length, value.length - after.length);
    if (
      value.startsWith(before) &&
      value.endsWith(after) &&
      Number.isFinite(Number.parseFloat(number))
    ) {
      return { form, number };
    }
  }
  return { form: "", number: "" };
}
