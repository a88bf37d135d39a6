// The tree of plans: heads on the left, a row for each plan that starts with them, values with standard errors as bars.
import { colour, isAgain } from "./palette.js";

const ROW = 25, WIDTH = 360, BAR = 192, END = 252, VALUE = 356, LETTER = 6.9, PITCH = 25;
const SPACE = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, text = "") {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

export const named = (policies, names) => policies.map((k) => names[k] ?? `π${k}`).join(" → ");

export function said(number, digits = 3) {
  if (number === null || number === undefined) return "–";
  return Math.abs(number) >= 100 ? number.toFixed(0) : number.toPrecision(digits).replace(/\.?0+$/, (zeros) => (zeros.includes(".") ? "" : zeros));
}

export function drawPlans(host, moment, names, selected, onSelect) {
  const groups = new globalThis.Map();
  moment.plans.forEach((plan, i) => { const head = plan.policies[0]; if (!groups.has(head)) groups.set(head, []); groups.get(head).push(i); });
  const count = moment.plans.length, height = count * ROW + 4;
  const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "list", "aria-label": "Plans, the chosen one first" });
  const bounds = moment.plans.flatMap(({ value, stderr }) => [value - (stderr ?? 0), value + (stderr ?? 0)]);
  const low = Math.min(0, ...bounds), high = Math.max(1e-6, ...bounds), at = (value) => BAR + (END - BAR) * (value - low) / (high - low);
  const most = Math.max(...moment.plans.map(({ samples }) => samples ?? 0)), columns = columnsOf(moment.plans, names);
  let row = 0;
  for (const [head, members] of groups) {
    const top = row * ROW + ROW / 2 + 2;
    members.forEach((i) => {
      const plan = moment.plans[i], y = row * ROW + ROW / 2 + 2, isOut = Boolean(plan.samples) && plan.samples < most;
      const label = `${named(plan.policies, names)}: ${said(plan.value)}${plan.stderr === null ? "" : ` ± ${said(plan.stderr, 2)}`}${plan.samples ? `, ${plan.samples} samples` : ""}${isOut ? ", dropped" : ""}${plan.chosen ? ", chosen" : ""}`;
      const line = element("g", { class: isOut ? "row out" : "row", role: "listitem", tabindex: "0", "aria-label": label });
      line.append(element("title", {}, label));
      if (i === selected) line.dataset.selected = "";
      line.append(element("rect", { class: "back", x: 1, y: y - ROW / 2 + 1, width: WIDTH - 2, height: ROW - 2, rx: 5 }));
      if (y !== top) line.append(element("path", { class: "link", d: `M 12 ${top + 6} V ${y - 5} q 0 5 5 5 H 24` }));
      drawSegments(line, plan, names, columns, y, y === top);
      drawBar(line, plan, y, at, low);
      const choose = () => onSelect(i);
      line.addEventListener("pointerenter", choose);
      line.addEventListener("focus", choose);
      svg.append(line);
      row += 1;
    });
  }
  host.replaceChildren(svg);
}

// Where the dots of each level are, and how many letters fit beside them.
function columnsOf(plans, names) {
  const depth = Math.max(...plans.map(({ policies }) => policies.length)), longest = Math.max(...names.map(({ length }) => length));
  const letters = Math.min(longest, Math.floor(((BAR - 12) / depth - PITCH) / LETTER));
  return { letters, at: (level) => 12 + level * (PITCH + LETTER * letters) };
}

function drawSegments(line, plan, names, { letters, at }, y, isHead) {
  plan.policies.forEach((policy, level) => {
    const x = at(level);
    if (level === 0 && !isHead) return;
    if (level > 0) line.append(element("path", { class: "link", d: `M ${isHead || level > 1 ? x - 12 : 24} ${y} H ${x - 5}` }));
    line.append(element("circle", { cx: x, cy: y, r: (level ? 4.5 : 5.5) - (isAgain(policy) ? 1 : 0), ...(isAgain(policy) ? { fill: "none", stroke: colour(policy), "stroke-width": 2 } : { fill: colour(policy) }) }), weighted(names[policy], letters, x + 10, y, plan.chosen));
  });
  if (plan.policies.length === 1 && !isHead) line.append(element("text", { x: 30, y: y + 4, class: "faint" }, "alone"));
}

function weighted(text, letters, x, y, isBold) {
  const short = text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
  return element("text", { x, y: y + 4, "font-weight": isBold ? 650 : 400 }, short);
}

// Rounding is no uncertainty.
const isSure = ({ value, stderr }) => !stderr || stderr < 1e-6 * Math.abs(value);

function drawBar(line, plan, y, at, low) {
  const zero = at(Math.max(0, low)), end = at(plan.value);
  line.append(element("rect", { x: Math.min(zero, end), y: y - 5, width: Math.max(Math.abs(end - zero), 1), height: 10, rx: 2, fill: colour(plan.policies[0]), class: "bar", opacity: plan.chosen ? 1 : 0.55 }));
  if (!isSure(plan)) {
    const [a, b] = [at(plan.value - plan.stderr), at(plan.value + plan.stderr)];
    line.append(element("path", { class: "whisker", d: `M ${a} ${y} H ${b} M ${a} ${y - 3} v 6 M ${b} ${y - 3} v 6` }));
  }
  const value = element("text", { x: VALUE, y: y + 4, "text-anchor": "end", "font-weight": plan.chosen ? 650 : 400 }, said(plan.value));
  if (!isSure(plan)) value.append(element("tspan", { class: "faint", "font-weight": 400, "font-size": 11 }, ` ± ${said(plan.stderr, 2)}`));
  line.append(value);
}
