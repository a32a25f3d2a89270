// Limits with the forms that change them, or have them observed.

import {put} from "./admin.js";
import {$, el, parted, show} from "./dom.js";

export const OBSERVE = "It refuses and throttles no client; the cluster counts what it would have done.";
const UNLIMITED = 2 ** 31 - 1;
let editing = null, latest = [[], null];

const shown = value => value === null ? "–" : value === UNLIMITED ? "unlimited" : Array.isArray(value) ? value.join(", ") || "–" : String(value) || "–";
const limitText = limit => limit.name + (limit.broker === null ? "" : ` (broker ${limit.broker})`);
const observedOf = (limit, observed) => observed && (limit.broker === null ? observed.set : observed.brokers[limit.broker] || {})[limit.name];
// `observed`: what is observed instead of enforced; null: nothing is.
export function drawLimits(limits, observed) {
  latest = [limits, observed];
  if (editing) return;
  const rows = [...limits].sort((a, b) => b.set - a.set);
  show("limits", ...rows.map(limit => {
    const tried = observedOf(limit, observed);
    return el("div", {class: "limit" + (limit.set ? " set" : ""), title: limit.doc},
      el("span", {class: "name mono"}, ...parted(limitText(limit))),
      el("span", {class: "value"}, shown(limit.value), tried === undefined || tried === null ? null : el("span", {class: "by"}, `observed: ${shown(tried)}`)),
      el("button", {class: "small", "aria-label": "Change " + limitText(limit), onclick: event => edit(limit, event.target.parentElement)}, "Change"));
  }));
}
function edit(limit, row) {
  if (editing) { editing = null; drawLimits(...latest); row = [...$("limits").children].find(one => one.firstChild.textContent === limitText(limit)); }
  editing = limitText(limit);
  const change = (body, done, how) => put("/v1/cluster_config" + (limit.broker === null ? "" : "?broker=" + limit.broker), body, form, done, how).then(ok => ok && close());
  const input = el("input", {name: "value", value: limit.set ? (Array.isArray(limit.value) ? limit.value.join(",") : String(limit.value)) : "",
    placeholder: Array.isArray(limit.value) ? "10.0.0.1:5, 10.1.0.0/16:200" : "a number", "aria-label": "New value of " + limitText(limit), autocomplete: "off", spellcheck: "false"});
  const close = () => { editing = null; drawLimits(...latest); };
  const upsert = () => ({upsert: {[limit.name]: input.value}, remove: []}), told = () => `${limitText(limit)} = ${input.value}`;
  const form = el("form", {onsubmit: event => { event.preventDefault(); change(upsert(), told()); },
    onkeydown: event => event.key === "Escape" && close()},
    el("p", {}, limit.doc), input, el("button", {class: "main", type: "submit"}, "Set"),
    limit.observable ? el("button", {type: "button", title: OBSERVE, onclick: () => change(upsert(), `${told()} is observed, not enforced`, {observe: true})}, "Observe") : null,
    limit.set ? el("button", {type: "button", onclick: () => change({upsert: {}, remove: [limit.name]}, `${limitText(limit)} is unset`)}, "Unset") : null,
    el("button", {type: "button", onclick: close}, "Cancel"));
  row.lastChild.hidden = true;
  row.append(form);
  input.focus(); input.select();
}
