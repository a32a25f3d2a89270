// Elements, tables and the message line. What clients chose (ids, users, addresses) enters the page as text nodes only.

const SVG = "http://www.w3.org/2000/svg";
export const $ = id => document.getElementById(id);

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") made.style.cssText = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter(child => child != null));
  return made;
}
export function svg(tag, {style = "", ...attributes} = {}, text = "") {
  const made = document.createElementNS(SVG, tag);
  made.style.cssText = style;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}
// `columns`: [heading, class]; n: a number, b: a bar, h: says its heading on a narrow screen, k: not broken into lines.
export function table(columns, rows) {
  const head = el("tr", {}, ...columns.map(([name, kind]) => el("th", {class: kind, scope: "col"}, name)));
  const row = cells => el("tr", {}, ...cells.map((cell, n) => el("td", {class: columns[n][1], "data-heading": columns[n][0]}, cell)));
  return el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows.map(row)));
}
// `parts`: [part of the whole in 0..1, color].
export const bar = (parts, title) =>
  el("div", {class: "bar", title}, ...parts.map(([part, color]) => el("i", {style: `width:${Math.min(100, 100 * part)}%;--c:${color}`})));
// A name of parts, such as a setting's, which may be broken into lines between them.
export const parted = name => name.split(/(?<=[._])/).flatMap(part => [part, el("wbr")]);
export const empty = text => el("div", {class: "empty"}, text);
// What an element is called, by which it is found again when it is drawn anew: else the keyboard would lose its place every second.
const called = one => one.tagName + (one.dataset.key || "") + (one.getAttribute("aria-label") || one.textContent);
// Nothing is drawn anew under a finger: a click on what was replaced since it began would be lost.
let pressed = false;
addEventListener("pointerdown", () => { pressed = true; });
for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => { pressed = false; });
export function show(id, ...children) {
  if (pressed) return;
  const place = $(id), held = place.contains(document.activeElement) ? called(document.activeElement) : null;
  place.replaceChildren(...children.filter(child => child != null));
  if (held) [...place.querySelectorAll("button, a, input, select")].find(one => called(one) === held)?.focus({preventScroll: true});
}
export const sum = values => values.reduce((a, b) => a + b, 0);

let saying;
export function say(text, bad = false) {
  $("say").textContent = text;
  $("say").className = bad ? "on bad" : "on";
  clearTimeout(saying);
  saying = setTimeout(() => $("say").className = "", Math.max(bad ? 8000 : 4000, 60 * text.length));
}
