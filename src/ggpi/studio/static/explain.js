// Answers: why this policy, and whether the models are right.
import { colour, isAgain, theme } from "./palette.js";
import { named, said } from "./plans.js";

const make = (name, text = "", attributes = {}) => Object.assign(document.createElement(name), { textContent: text, ...attributes });

function chips(policies, title) {
  const cell = make("th", "", { scope: "row" });
  for (const k of policies) { const dot = make("span", "", { className: "chip" }); dot.style[isAgain(k) ? "boxShadow" : "background"] = isAgain(k) ? `inset 0 0 0 2px ${colour(k)}` : colour(k); cell.append(dot); }
  cell.append(title);
  return cell;
}

// A plan by its policies; in the closed loop a policy until the next switch, which V stands for.
const titled = ({ policies }, { loop }, names) => (loop ? `${named(policies, names)}, then V` : named(policies, names));
const spread = (value, error, digits = 3) => (error > 1e-6 * Math.abs(value) ? `${said(value, digits)} ± ${said(error, 2)}` : said(value, digits));

export function showExplained(host, answer, names, onPoint) {
  const simulated = answer.loop ? `jump simulated (${answer.futures}), then V` : `simulated (${answer.futures})`;
  const truth = { none: null, exact: "exact", simulated }[answer.truth];
  const table = make("table"), head = make("tr");
  for (const title of [answer.loop ? "policy" : "plan", "value", "behind by", ...(truth ? [truth] : [])]) head.append(make("th", title, { scope: "col" }));
  const top = make("thead");
  top.append(head);
  const body = make("tbody");
  answer.plans.forEach((plan, i) => {
    const row = make("tr");
    if (plan.chosen) row.dataset.chosen = "";
    row.tabIndex = 0;
    for (const kind of ["pointerenter", "focus"]) row.addEventListener(kind, () => { for (const other of body.children) other.toggleAttribute("data-point", other === row); onPoint(plan.policies); });
    const behind = i ? `${said(plan.difference, 2)} ± ${said(plan.stderr, 2)}` : plan.chosen ? "followed" : "best";
    row.append(chips(plan.policies, titled(plan, answer, names)), make("td", spread(plan.value, plan.value_stderr)), make("td", behind));
    if (truth) row.append(make("td", spread(plan.true, plan.true_stderr)));
    body.append(row);
  });
  const drawn = answer.loop ? `values of the decision itself, differences of ${answer.samples} further jumps` : `${answer.samples} samples each`;
  table.append(make("caption", `Agent ${answer.agent + 1}, step ${answer.t}; ${drawn}`, { className: "muted" }), top, body);
  host.replaceChildren(table, make("p", verdict(answer, names), { className: "muted" }));
}

// Is the choice clear, and would simulation have chosen it?
function verdict(answer, names) {
  const { plans, truth, loop } = answer, [first] = plans, others = plans.filter((plan) => plan.policies[0] !== first.policies[0]);
  const words = [];
  if (!first.chosen) words.push("The plan that was followed is not among those that this depth compares.");
  if (others.length) words.push(apart(first, others, answer, names));
  if (truth === "none") return [...words, `There is no ${loop ? "true jump" : "truth"} beside the values: this environment cannot be simulated from the agent's state.`].join(" ");
  const best = plans.reduce((a, b) => (a.true > b.true ? a : b)), agrees = best.policies[0] === first.policies[0];
  return [...words, `${truth === "exact" ? "Exact evaluation" : "Simulation"} ${agrees ? "agrees on the first policy" : `prefers ${titled(best, answer, names)}`}.`].join(" ");
}

function apart(first, others, answer, names) {
  const rival = others.reduce((a, b) => (a.value > b.value ? a : b)), errors = said(Math.abs(rival.difference) / Math.max(rival.stderr, 1e-9), 2);
  if (Math.abs(rival.difference) <= 2 * rival.stderr) return `The choice is not clear: ${titled(rival, answer, names)} is within two standard errors.`;
  const nearest = answer.loop ? "The nearest policy" : "The nearest plan with another first policy";
  return `${nearest}, ${titled(rival, answer, names)}, is ${rival.difference >= 0 ? "behind" : "ahead"} by ${errors} standard errors.`;
}

export function showDiagnosed(host, answer, { policies: names, grid: isGrid, axes }) {
  const grid = make("div", "", { className: "models" }), [, , count] = answer.placesShape;
  answer.models.forEach((model, i) => {
    const figure = make("figure"), canvas = make("canvas"), caption = make("figcaption");
    canvas.setAttribute("role", "img");
    const numbers = model.energy === undefined ? "" : `, energy ${said(model.energy, 2)} (floor ${said(Math.max(model.energy_floor, 0), 2)})`;
    caption.textContent = `${names[model.policy]}, horizon ${said(model.horizon)}: ${model.verdict}${numbers}`;
    canvas.setAttribute("aria-label", caption.textContent);
    figure.append(canvas, caption);
    grid.append(figure);
    const places = answer.places.subarray(4 * i * count, 4 * (i + 1) * count), shown = isGrid ? scattered(places) : places;
    new ResizeObserver(() => drawClouds(canvas, shown, count, colour(model.policy), axes, isGrid ? 3 : 1e-6)).observe(canvas);
  });
  host.replaceChildren(make("p", "Colour: samples of the model. Rings: true futures.", { className: "muted" }), grid);
}

// Within their cells, so that equal places can be counted.
const scattered = (places) => places.map((x, i) => x + 0.32 * (i % 2 ? Math.cos(7.7 * i) : Math.sin(12.9 * i)));

function drawClouds(canvas, places, count, tone, axes, least) {
  const grown = parseFloat(getComputedStyle(document.documentElement).fontSize) / 15, ratio = grown * (window.devicePixelRatio || 1);
  const size = canvas.clientWidth / grown, pen = canvas.getContext("2d"), ink = theme();
  if (!size) return;
  canvas.width = canvas.height = size * ratio;
  pen.scale(ratio, ratio);
  let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < places.length; i += 2) { x0 = Math.min(x0, places[i]); x1 = Math.max(x1, places[i]); y0 = Math.min(y0, places[i + 1]); y1 = Math.max(y1, places[i + 1]); }
  const span = Math.max(x1 - x0, y1 - y0, least) * 1.3, mx = (x0 + x1) / 2, my = (y0 + y1) / 2;
  const at = (i) => [size / 2 + (places[2 * i] - mx) / span * size, size / 2 - (places[2 * i + 1] - my) / span * size];
  pen.fillStyle = tone; pen.globalAlpha = 0.55;
  for (let i = 0; i < count; i++) { pen.beginPath(); pen.arc(...at(i), 2.6, 0, 7); pen.fill(); }
  pen.strokeStyle = ink.ink; pen.globalAlpha = 0.75; pen.lineWidth = 0.9;
  for (let i = count; i < 2 * count; i++) { pen.beginPath(); pen.arc(...at(i), 2.6, 0, 7); pen.stroke(); }
  pen.globalAlpha = 1; pen.fillStyle = ink.muted; pen.font = "10.5px system-ui, 'DejaVu Sans', sans-serif";
  const [low, high] = [mx - span / 2, mx + span / 2].map((x) => tidy(x, span)), [bottom, top] = [my - span / 2, my + span / 2].map((x) => tidy(x, span));
  pen.fillText(`↑ ${axes[1]} ${bottom} to ${top}`, 5, 13);
  pen.textAlign = "right";
  pen.fillText(`${axes[0]} ${low} to ${high} →`, size - 5, size - 5);
}

// Rounded to hundredths of a span, as far as powers of ten go.
function tidy(x, span) {
  const unit = 10 ** Math.floor(Math.log10(span / 10));
  return String(Number((Math.round(x / unit) * unit).toPrecision(6)) || 0);
}
