// The one spelling of numbers for people, as in turnstile/quantities.py, which states its rules (V1 to V3);
// tests/support/quantities.json holds both to the same cases.

const EXACT_BELOW = 100000, PREFIXES = ["", "k", "M", "G", "T"];

export function count(value) {
  if (Math.abs(value) < 10 && value % 1) return tidy(value.toFixed(1));
  if (Math.round(Math.abs(value)) < EXACT_BELOW) return Math.round(value).toLocaleString("en");
  return scaled(value, "");
}
export const perSecond = value => `${count(value)}/s`;
export const byteRate = value => `${scaled(value, " ")}B/s`;
export const percent = value => `${digits(value)} %`;
export function duration(ms) {
  if (Math.round(ms) < 1000) return `${Math.round(ms)} ms`;
  const [unit, size] = [["s", 1e3, 60], ["min", 6e4, 60], ["h", 3.6e6, 24], ["d", 8.64e7, Infinity]].find(([, size, below]) => ms / size < below);
  return `${ms / size < 10 ? tidy((ms / size).toFixed(1)) : (ms / size).toFixed(0)} ${unit}`;
}
export const QUOTAS = {
  connection_creation_rate: perSecond, producer_byte_rate: byteRate, consumer_byte_rate: byteRate,
  request_percentage: percent, controller_mutation_rate: perSecond,
};
export const utilisation = (used, limit) => limit > 0 ? used / limit : used <= 0 ? 1 : Infinity;
export function level(used, limit) {
  const share = utilisation(used, limit);
  return share >= 1 ? "full" : share >= .9 ? "near" : share >= .8 ? "high" : "roomy";
}
export function use(used, limit, spell = count) {
  if (limit === null) return `${spell(used)}, no limit`;
  const share = utilisation(used, limit);
  return `${spell(used)} of ${spell(limit)} (${share === Infinity ? "over" : Math.floor(share * 100 + 1e-9).toLocaleString("en") + " %"})`;
}

// The number that a person wrote in these spellings: 1000000, 1MB/s, 512KiB, 1.5M, 50%; NaN of any other text.
const WRITTEN = /^(?<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?) ?(?:(?<prefix>[kKMGT]?)(?<binary>(?<=[KMGT])i)?B?(?:\/s)?|%)$/;
export function written(text) {
  const found = text.trim().match(WRITTEN)?.groups;
  if (!found) return NaN;
  return Number(found.number) * (found.binary ? 1024 : 1000) ** PREFIXES.indexOf((found.prefix || "").replace("K", "k"));
}

const tidy = text => text.includes(".") ? text.replace(/\.?0+$/, "") : text;
function scaled(value, space) {
  let power = 0;
  while (Math.abs(Number(value.toPrecision(3))) >= 1000 && power < PREFIXES.length - 1) { value /= 1000; power += 1; }
  return digits(value) + space + PREFIXES[power];
}
function digits(value) {
  const size = Math.abs(value);
  return tidy(value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= .9995 ? 2 : 4));
}

// An entity of a quota as `turnstile quota` takes it.
export const entityText = entity => Object.entries(entity).reverse().map(([kind, name]) => `${kind}=${name === null ? "<default>" : name}`).join(" ");
