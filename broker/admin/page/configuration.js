// Limits and quotas with the forms that change them, and the history of changes.

import {put} from "./admin.js";
import {$, el, parted, say, show} from "./dom.js";
import {entityText, QUOTAS, written} from "./quantities.js";

const UNLIMITED = 2 ** 31 - 1, OBSERVE = "It refuses and throttles no client; the cluster counts what it would have done.";
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

const clock = at => new Date(at * 1000).toLocaleTimeString([], {hour12: false});
const valueText = value => value === null ? "unset" : Array.isArray(value) ? value.join(", ") : typeof value === "object" ? Object.entries(value).map(pair => pair.join("=")).join(" ") : String(value);
function changeText([kind, key, before, after]) {
  const moved = `${valueText(before)} → ${valueText(after)}`;
  const aside = {setting: "", static: " (command line)", observed: " (observed)"}[kind];
  if (aside !== undefined) {
    const name = key.replace(/^\//, "").replace(/^(\d+)\//, "broker $1: ");
    return `${name}${aside}: ${moved}`;
  }
  if (kind === "topic") return `topic ${key} ${before === null ? "created" : after === null ? "deleted" : "changed"}`;
  if (kind === "observed_quota") return `quota of ${entityText(JSON.parse(key))} (observed): ${moved}`;
  return `${kind === "quota" ? "quota of " + entityText(JSON.parse(key)) : `${kind} ${key}`}: ${moved}`;
}
export function drawHistory(changes) {
  // Settings that follow from a broker's endpoints are no change of a user's.
  const told = change => change.changes.filter(([kind, key]) => kind !== "static" || key.startsWith("/"));
  const items = changes.map(change => el("li", {},
    el("div", {class: "dim"}, `version ${change.version}, ${clock(change.at)}, ${change.who}`),
    ...told(change).slice(0, 4).map(one => el("div", {class: "what"}, changeText(one).slice(0, 160))),
    told(change).length ? null : el("div", {class: "what"}, "cluster started"),
    told(change).length > 4 ? el("div", {class: "dim"}, `and ${told(change).length - 4} more`) : null));
  show("history", ...(items.length ? items : [el("li", {class: "empty"}, "Nothing was changed yet.")]));
}
