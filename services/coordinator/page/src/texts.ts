/** Texts and numbers in the language that the browser prefers. */

import { TEXTS } from "./words.ts";

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
