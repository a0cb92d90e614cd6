/** Makes elements. Text is always set as text, so nothing that a model wrote is ever read as HTML. */

type Child = Node | string | null | undefined;

/** What an element is given: listeners by `on...`, classes by `class`, all else as attributes. */
type Given = Record<string, unknown>;

/** Returns a new element. A value of false, null or undefined leaves its attribute out. */
export function el<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  given: Given = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  set(element, given);
  element.append(...children.filter((child): child is Node | string => child != null));
  return element;
}

/** Returns a new element of an SVG. */
export function svg(name: string, given: Given = {}, ...children: Node[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  set(element, given);
  element.append(...children);
  return element;
}

/** Returns a button of type `button`. */
export function button(text: string, onclick: () => void, given: Given = {}): HTMLButtonElement {
  return el("button", { type: "button", onclick, ...given }, text);
}

/** Sets the text of an element where it differs, so that screen readers are not told the same twice. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

function set(element: Element, given: Given): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === false || value == null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}
