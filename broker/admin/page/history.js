// The history of changes of the configuration.

import {el, show} from "./dom.js";
import {entityText} from "./quantities.js";

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
