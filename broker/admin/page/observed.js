// Limits that are observed instead of enforced: what they would have done, and the end of observing one.

import {put} from "./admin.js";
import {THROTTLES} from "./charts.js";
import {$, el, parted, show, sum, table} from "./dom.js";
import {count, entityText} from "./quantities.js";

const valueText = value => Array.isArray(value) ? value.join(", ") : String(value);
const some = (n, what, ending = "s") => `${count(n)} ${what}${n === 1 ? "" : ending}`;
// null: nothing is observed.
export function drawObserved(told) {
  $("rehearsal").hidden = told === null;
  if (told) show("observed", ...drawConnections(told), ...drawQuotas(told.quotas));
}

function drawConnections(told) {
  const {refused, waited, undecided, addresses, more} = told;
  const of = addresses ? ` of ${more ? "at least " : ""}${some(addresses, "address", "es")}` : "";
  const refusing = `would have refused ${some(refused, "connection")}`, waiting = n => `would have made ${n} wait`;
  const would = !waited ? refusing + of : !refused ? waiting(some(waited, "connection") + of) : `${refusing}, and ${waiting(count(waited))}${of && "," + of}`;
  const settings = [[null, told.set], ...Object.entries(told.brokers)].flatMap(([broker, own]) => Object.entries(own).map(([name, value]) =>
    ({name, value, text: name + (broker === null ? "" : ` (broker ${broker})`), stop: stopSetting(name, broker)})));
  const rates = quotaRows(told.quotas, entity => "ip" in entity).map(row => ({...row, text: `${row.name} (${entityText(row.entity)})`}));
  const rows = [...settings, ...rates], counts = counted(rows, told.caps.map(cap => ({name: cap.limit, value: cap.value, n: cap.count})));
  if (!rows.length) return [];
  return [el("p", {}, el("b", {}, would), undecided ? `; ${some(undecided, "connection")} could not be decided` : ""),
    table([["observed", ""], ["value", "n t"], ["connections", "n"], ["", ""]], rows.map((row, n) =>
      [el("span", {class: "mono"}, ...parted(row.text)), valueText(row.value), counts[n], row.stop]))];
}

function drawQuotas(told) {
  const rows = quotaRows(told, entity => !("ip" in entity));
  if (!rows.length) return [];
  const of = told.clients.length ? ` of ${told.more ? "at least " : ""}${some(told.clients.length, "client")}` : "";
  const counts = counted(rows, told.quotas.map(row => ({name: row.quota, value: row.value, n: row.requests})));
  return [el("p", {}, el("b", {}, `would have throttled ${some(told.requests, "request")}${of}`)),
    table([["observed", ""], ["quota", "h k"], ["value", "n t"], ["requests", "n"], ["", ""]], rows.map((row, n) =>
      [el("span", {class: "mono"}, entityText(row.entity)), el("span", {title: row.name}, THROTTLES[row.name]), valueText(row.value), counts[n], row.stop]))];
}

const quotaRows = (told, of) => (told ? told.set : []).filter(({entity}) => of(entity)).flatMap(({entity, values}) =>
  Object.entries(values).map(([name, value]) => ({name, value, entity, stop: stopQuota(entity, name)})));
// What was counted by each row. The cluster counts by the name and the value: rows that have both in common are counted together.
function counted(rows, counts) {
  const alike = (a, b) => a.name === b.name && a.value === b.value, several = name => rows.filter(row => row.name === name).length > 1;
  return rows.map(row => {
    const n = sum(counts.filter(each => several(row.name) ? alike(each, row) : each.name === row.name).map(each => each.n));
    return count(n) + (rows.filter(each => alike(each, row)).length > 1 ? " together" : "");
  });
}

function stop(path, body, what) {
  return el("button", {class: "small", "aria-label": `Stop observing ${what}`,
    onclick: event => put(path, body, event.target.parentElement, `${what} is no longer observed`, {observe: true})}, "Stop");
}
const stopSetting = (name, broker) => stop("/v1/cluster_config" + (broker === null ? "" : `?broker=${broker}`), {upsert: {}, remove: [name]}, name + (broker === null ? "" : ` (broker ${broker})`));
const stopQuota = (entity, name) => stop("/v1/quotas", {alter: [{entity, remove: [name]}]}, `${name} of ${entityText(entity)}`);
