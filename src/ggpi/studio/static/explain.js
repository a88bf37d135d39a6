// Answers: why this policy, and whether the models are right.
import { colour, isAgain, theme } from "./palette.js";
import { named, said } from "./plans.js";

const make = (name, text = "", attributes = {}) => Object.assign(document.createElement(name), { textContent: text, ...attributes });

function chips(policies, names) {
  const cell = make("th", "", { scope: "row" });
  for (const k of policies) { const dot = make("span", "", { className: "chip" }); dot.style[isAgain(k) ? "boxShadow" : "background"] = isAgain(k) ? `inset 0 0 0 2px ${colour(k)}` : colour(k); cell.append(dot); }
  cell.append(named(policies, names));
  return cell;
}

export function showExplained(host, answer, names, onPoint) {
  const truth = { none: null, exact: "exact", simulated: `simulated (${answer.futures})` }[answer.truth];
  const table = make("table"), head = make("tr");
  for (const title of ["plan", "value", "behind by", ...(truth ? [truth] : [])]) head.append(make("th", title, { scope: "col" }));
  const top = make("thead");
  top.append(head);
  const body = make("tbody");
  for (const plan of answer.plans) {
    const row = make("tr");
    if (plan.chosen) row.dataset.chosen = "";
    row.tabIndex = 0;
    for (const kind of ["pointerenter", "focus"]) row.addEventListener(kind, () => { for (const other of body.children) other.toggleAttribute("data-point", other === row); onPoint(plan.policies); });
    row.append(chips(plan.policies, names), make("td", said(plan.value)), make("td", plan.chosen ? "followed" : `${said(plan.difference, 2)} ± ${said(plan.stderr, 2)}`));
    if (truth) row.append(make("td", plan.true_stderr ? `${said(plan.true)} ± ${said(plan.true_stderr, 2)}` : said(plan.true)));
    body.append(row);
  }
  table.append(make("caption", `Agent ${answer.agent + 1}, step ${answer.t}; ${answer.samples} samples each`, { className: "muted" }), top, body);
  host.replaceChildren(table, make("p", verdict(answer, names), { className: "muted" }));
}

// One sentence: is the choice clear, and would simulation have chosen it?
function verdict({ plans, truth }, names) {
  const chosen = plans.find((plan) => plan.chosen), others = plans.filter((plan) => plan.policies[0] !== chosen.policies[0]);
  if (!others.length) return "";
  const rival = others.reduce((a, b) => (a.value > b.value ? a : b)), clear = Math.abs(rival.difference) > 2 * rival.stderr;
  const first = clear
    ? `The nearest plan with another first policy, ${named(rival.policies, names)}, is ${rival.difference >= 0 ? "behind" : "ahead"} by ${said(Math.abs(rival.difference) / Math.max(rival.stderr, 1e-9), 2)} standard errors.`
    : `The choice is not clear: ${named(rival.policies, names)} is within two standard errors.`;
  if (truth === "none") return first;
  const best = plans.reduce((a, b) => (a.true > b.true ? a : b));
  const agrees = best.policies[0] === chosen.policies[0];
  return `${first} ${truth === "exact" ? "Exact evaluation" : "Simulation"} ${agrees ? "agrees on the first policy" : `prefers ${named(best.policies, names)}`}.`;
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
