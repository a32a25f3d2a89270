// Questions to the admin API, and changes; a change that is refused is said, and is not taken for done.

import {say} from "./dom.js";

// Where the page was opened with user:token@ before the host, a relative path would be refused by fetch.
const at = path => location.origin + path;

// What a refusal says: {message}, or for each parameter that is wrong what is wrong with it.
const why = told => told.message || Object.values(told).join(" ");

export async function ask(path) {
  const answer = await fetch(at(path), {signal: AbortSignal.timeout(4000)});
  if (answer.ok) return answer.json();
  const told = answer.status < 500 ? await answer.json().catch(() => ({})) : {};
  throw Object.assign(new Error(why(told) || `${path} answered with ${answer.status}`), {status: answer.status});
}
// A question with a body.
export async function call(path, body) {
  const answer = await fetch(at(path), {method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify(body), signal: AbortSignal.timeout(10000)});
  const told = await answer.json();
  if (!answer.ok) throw new Error(why(told) || `${path} answered with ${answer.status}`);
  return told;
}
// `done`: the result of the change, in words; `observe`: changes what is observed instead of what is enforced.
export async function put(path, body, form, done, {observe = false} = {}) {
  if (observe) path += (path.includes("?") ? "&" : "?") + "observe=true";
  for (const button of form.querySelectorAll("button")) button.disabled = true;
  try {
    const answer = await fetch(at(path), {method: "PUT", headers: {"content-type": "application/json", "x-turnstile-who": "live page"}, body: JSON.stringify(body)});
    const text = await answer.text();
    let told;
    try { told = JSON.parse(text); } catch { told = {message: text}; }
    if (answer.ok) say([`${done}, ${observe ? "" : "in force "}on every shard since version ${told.config_version}`, ...(told.notes || [])].join(". "));
    else say(why(told) || `The cluster answered with ${answer.status}.`, true);
    return answer.ok;
  } catch (error) {
    say("The cluster did not answer: " + error.message, true);
    return false;
  } finally {
    for (const button of form.querySelectorAll("button")) button.disabled = false;
  }
}
