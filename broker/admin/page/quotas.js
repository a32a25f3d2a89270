// Quotas of addresses, users and client ids, with the form that changes them, or has them observed.

import {put} from "./admin.js";
import {el, say, show} from "./dom.js";
import {OBSERVE} from "./limits.js";
import {entityText, QUOTAS, written} from "./quantities.js";

function entityOf(text) {
  const parts = text.trim().split(/\s+(?=(?:ip|user|client-id|client-id-prefix)=)/).map(part => part.match(/^(ip|user|client-id|client-id-prefix)=(.+)$/));
  if (parts.some(part => !part)) throw new Error("Name the entity as ip=10.0.0.1, user=alice or client-id=app; <default> stands for every other name.");
  return Object.fromEntries(parts.map(([, kind, name]) => [kind, name === "<default>" ? null : name]));
}
// Bytes a second, percent, or a count a second: what is no number would reach the server as null.
function numberOf(text) {
  const value = written(text);
  if (!Number.isFinite(value) || value < 0) throw new Error(`${JSON.stringify(text)} is not a number: write it as 1000000 or 1MB.`);
  return value;
}
export function drawQuotas(quotas) {
  const rows = quotas.flatMap(row => Object.entries(row.values).map(([key, value]) => el("div", {class: "limit set"},
    el("span", {class: "name mono"}, entityText(row.entity)), el("span", {class: "value", title: String(value)}, `${key} ${QUOTAS[key](value)}`),
    el("button", {class: "small", "aria-label": `Remove ${key} of ${entityText(row.entity)}`,
      onclick: event => put("/v1/quotas", {alter: [{entity: row.entity, remove: [key]}]}, event.target.parentElement, `${key} of ${entityText(row.entity)} removed`)}, "Remove"))));
  const who = el("input", {placeholder: "ip=10.0.0.1 or user=alice", "aria-label": "Entity", spellcheck: "false", autocomplete: "off", required: true});
  const key = el("select", {"aria-label": "Quota"}, ...Object.keys(QUOTAS).map(name => el("option", {}, name)));
  const value = el("input", {class: "short", placeholder: "such as 1MB", "aria-label": "Value", autocomplete: "off", required: true});
  const change = (how, told) => {
    try {
      const set = {[key.value]: numberOf(value.value)};
      put("/v1/quotas", {alter: [{entity: entityOf(who.value), set}]}, form, `${who.value}: ${key.value} = ${set[key.value]}${told}`, how);
    } catch (error) { say(error.message, true); }
  };
  const form = el("form", {onsubmit: event => { event.preventDefault(); change({}, ""); }}, who, key, el("span", {class: "group"}, value, el("button", {class: "main", type: "submit"}, "Set"),
    el("button", {type: "button", title: OBSERVE, onclick: () => form.reportValidity() && change({observe: true}, " is observed, not enforced")}, "Observe")));
  show("quotas", ...rows, el("div", {class: "limit"}, form));
}
