// The shapes of charts over time, the newest at the right.

import {svg} from "./dom.js";

export const x = (at, now, width, span) => width - (now - at) / span * width;
// How many seconds to show: all there is, between one minute and the most that is kept.
export const spanOf = (points, most) => Math.min(most, Math.max(60, points.length ? points.at(-1).at - points[0].at : 0));
export function nice(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 3, 4, 6, 8, 10].map(step => step * power).find(step => step >= value);
}
export function stacked(points, layers, width, height, top, span) {
  const now = points.at(-1).at, base = points.map(() => 0);
  return layers.map(({of, color}) => {
    const low = base.slice();
    points.forEach((point, n) => base[n] += of(point));
    const place = (n, value) => `${x(points[n].at, now, width, span).toFixed(1)},${(height - value / top * height).toFixed(1)}`;
    const up = points.map((_, n) => place(n, base[n])), down = points.map((_, n) => place(n, low[n])).reverse();
    return svg("path", {d: `M${[...up, ...down].join("L")}Z`, style: `fill:${color}`, "fill-opacity": .85});
  });
}
export function line(points, of, width, height, top, color, span, now = points.at(-1).at) {
  const d = points.map(point => `${x(point.at, now, width, span).toFixed(1)},${(height - of(point) / top * height).toFixed(1)}`).join("L");
  return svg("path", {d: "M" + d, fill: "none", style: `stroke:${color}`, "stroke-width": 1.75, "stroke-linejoin": "round"});
}
