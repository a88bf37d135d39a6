// The page: what the server says becomes pictures, what one clicks becomes messages.
import { changeOf, linkFields, placeOf } from "./address.js";
import { showDiagnosed, showExplained } from "./explain.js";
import * as files from "./export.js";
import { listen } from "./gestures.js";
import { Link, REJECTED, VERSION } from "./link.js";
import { Map, View } from "./map.js";
import { fromText, toText } from "./paint.js";
import { colour } from "./palette.js";
import { drawPlans, named, said } from "./plans.js";

const $ = (id) => document.getElementById(id);
const KEPT = 800;
const QUICK = new Set(["speed", "repeat"]);  // settings that need no plan
const view = new View();

const app = {
  world: null, settings: null, shapes: [], formula: "", tool: "disc", sign: 1, isPlaying: false, isReplay: false,
  agents: [], maps: [new Map($("map-0"), view), new Map($("map-1"), view)], body: null, scrub: null, selected: [0, 0], isOpening: false,
  rewardChanged, put: ([x, y]) => send("put", { x, y }),
};
globalThis.studio = app;  // for the curious, and for tests
app.maps.forEach((map) => listen(map, app));
const link = new Link(received, connected);

// Messages that are answered by a moment, if only after a while.
function send(type, fields = {}) {
  link.send(type, fields);
  if (Object.keys(fields).some((name) => !QUICK.has(name)) || type !== "change") wait(true);
}

// ---- what the server says

function received(frame) {
  const answer = {
    hello, world: opened, settings: settled, moment: moved, status: ({ text }) => busy(text), error: ({ text }) => { wait(false); complain(text); asBefore(); },
    rewards: (raster) => { app.maps.forEach((map) => { map.scene.rewards = raster; map.draw(); }); },
    values: (raster) => { app.maps.filter((_, i) => (raster.agent ?? i) === i).forEach((map) => { map.scene.values = raster.numbers ? raster : null; map.draw(); }); },
    tally: ({ tally }) => showTally(tally),
    explained: (found) => { showExplained($("explained"), found, app.world.policies, (policies) => point(found, policies)); select("why"); },
    diagnosed: (found) => showDiagnosed($("diagnosed"), found, app.world),
  }[frame.type];
  answer?.(frame);
}

function hello({ version, worlds, replay, film }) {
  if (version !== VERSION) { complain(`The server speaks version ${version} of the protocol, this page version ${VERSION}: reload this page.`, true); return; }
  app.isReplay = replay;
  document.querySelector('[data-export="mp4"]').hidden = !film;
  $("no-film").hidden = film !== false;
  $("world").replaceChildren(...worlds.map((name) => new Option(name.replaceAll("-", " "), name)));
  if (replay) { busy(""); complain("", true); return; }
  const wanted = new URLSearchParams(location.hash.slice(1)), name = wanted.get("world");
  app.wanted = app.world ? linkFields(app) : wanted;
  send("open", { world: app.world?.name ?? (worlds.includes(name) ? name : worlds[0]) });
}

function opened(world) {
  app.world = world;
  app.agents = [];
  app.scrub = null;
  app.isOpening = false;
  Object.assign(app, { settings: null, shapes: [], formula: "" });
  sent = [];
  $("formula").value = "";
  $("world").value = world.name;
  $("names").textContent = world.names.length > 8 ? `${world.names.slice(0, 6).join(", ")}, …` : world.names.join(", ");
  $("names").title = world.names.join(", ");
  $("planner").replaceChildren(...world.planners.map((name) => new Option(name, name)));
  for (const button of document.querySelectorAll('[data-depth="0"]')) button.disabled = !world.closed_loop;
  $("second").querySelector('[value="0"]').disabled = !world.closed_loop;
  document.querySelector('[data-tool="put"]').disabled = !world.put;
  $("diagnose").disabled = !world.simulator;
  $("no-simulator").hidden = world.simulator;
  $("gamma").max = Math.max(world.largest, world.gamma);
  for (const [id, isFree] of [["gamma", world.free], ["alpha", world.free || world.alphas.length > 1]]) { $(id).disabled = !isFree; $(id).closest(".field").toggleAttribute("data-fixed", !isFree); $(id).title = isFree ? "" : "fixed by the models"; }
  for (const host of ["explained", "diagnosed"]) $(host).replaceChildren();
  view.fit(world.bounds);
  for (const map of app.maps) map.scene = { walls: world.walls, shapes: app.shapes, trail: [], axes: world.axes, isGrid: world.grid, isBounded: world.put && !world.geometry, isAlike: world.put };
  document.title = `${world.title} · ggpi studio`;
  const fields = app.wanted ?? new URLSearchParams(), wanted = changeOf(fields), place = placeOf(fields);
  app.wanted = null;
  if (Object.keys(wanted).length) send("change", wanted);
  if (place && world.put) app.put(place);
  if (world.geometry) openBody(world); else app.body = null;
  arrange();
}

function settled(settings) {
  const isOwn = forgotten(settings.formula), isNew = app.settings?.formula !== settings.formula;
  app.settings = settings;
  if (isNew && !isOwn) {
    ({ shapes: app.shapes, formula: app.formula } = fromText(settings.formula));
    if (document.activeElement !== $("formula")) $("formula").value = app.formula;
  }
  controls(settings);
  $("python").textContent = settings.python;
  $("command").textContent = settings.command;
  $("command-part").hidden = !settings.command;
  $("no-command").hidden = Boolean(settings.command);
  complain("");
  if (!settings.due) wait(false);
  shareInAddress();
  arrange();
}

function controls(settings) {
  for (const button of $("depth").children) { const isIt = Number(button.dataset.depth) === settings.depth; button.setAttribute("aria-checked", isIt); button.tabIndex = isIt ? 0 : -1; }
  for (const name of ["second", "planner", "speed"]) $(name).value = String(settings[name]);
  for (const name of ["samples", "gamma", "alpha"]) { if (document.activeElement !== $(name)) $(name).value = settings[name]; $(`${name}-said`).textContent = said(settings[name]); }
  $("repeat").checked = settings.repeat;
}

// After a mistake the old world and settings are in force.
function asBefore() {
  app.isOpening = false;
  if (app.world) $("world").value = app.world.name;
  if (app.settings) controls(app.settings);
}

function moved(moment) {
  const agent = (app.agents[moment.agent] ??= { moments: [] });
  if (moment.t === 0 || (agent.moments.length && moment.t < agent.moments.at(-1).t)) agent.moments = [];
  missed(agent.moments, moment);
  const i = agent.moments.findLastIndex(({ t }) => t === moment.t);
  if (i >= 0) agent.moments[i] = moment; else agent.moments.push(moment);
  agent.moments.splice(0, Math.max(agent.moments.length - KEPT, 0));
  agent.isLive = true;
  if (moment.agent >= Math.min(app.settings?.second ?? -1, 0) + 1) wait(false);
  if (moment.agent === 0) pace(moment);
  if (!app.settings?.repeat && app.agents.every(({ moments }) => moments.at(-1)?.ended)) playing(false);
  if (app.scrub !== null && app.isPlaying) app.scrub = null;
  showTally(moment.tally);
  if (moment.agent === 0 && app.body && moment.poses) app.body.move(moment.poses, moment.posesShape, moment.policy, moment.t ? app.world.seconds / Math.max(app.settings.speed || 4, 0.1) : 0.01);
  app.selected[moment.agent] = 0;
  show();
}

// Moments that the server has dropped because this page was busy: where the agent was, without its plans.
function missed(moments, { t, way = [] }) {
  const first = (moments.at(-1)?.t ?? -1) + 1;
  for (let k = Math.max(first, t - way.length); k < t; k++) {
    const [x, y, policy, reward] = way[way.length - t + k], plan = { policies: [policy], nodes: [], value: null, stderr: null, chosen: true };
    moments.push({ t: k, place: [x, y], policy, reward, return: null, reached: null, isMissed: true, plans: [plan], count: 0, nodes: [], places: [], draws: 0, survivors: [] });
  }
}

// ---- pictures

function arrange() {
  const count = app.settings?.second >= 0 ? 2 : 1, hasBody = Boolean(app.world?.geometry);
  $("view-1").hidden = count < 2;
  $("why-1").hidden = count < 2 || $("why").hidden;
  $("why").textContent = count < 2 ? "Why here?" : "Why left?";
  $("view-body").hidden = !hasBody;
  if (app.body) $("caption-body").textContent = `${count < 2 ? "The ant" : "The ant of the left agent"}. Drag, or use arrow keys, to turn.`;
  $("views").dataset.count = count + Number(hasBody);
  app.agents.length = Math.min(app.agents.length, count);
  show();
}

let body = null;
async function openBody(world) {
  try {
    const { Body } = await import("./ant.js");
    if (app.world !== world) return;
    app.body = body ??= new Body($("body"));
    app.body.build(world.geometry, document.documentElement.dataset.theme === "dark");
    app.body.paint(app.shapes);
    pose(app.agents[0]?.moments.at(-1));
  } catch (error) {
    $("caption-body").textContent = `No three-dimensional view here: ${error.message}`;
  }
}

// The ant at a moment that is not now.
function pose(moment) {
  if (moment?.poses) app.body?.move(moment.poses, moment.posesShape, moment.policy, 0.01);
}

let isDue = false;
function show() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => { isDue = false; paint(); });
}

function paint() {
  app.maps.forEach((map, i) => {
    const moments = app.agents[i]?.moments ?? [], at = app.scrub === null ? moments.length - 1 : Math.min(app.scrub, moments.length - 1);
    Object.assign(map.scene, { shapes: app.shapes, hasFormula: Boolean(app.formula.trim()), moment: moments[at], trail: moments.slice(0, at + 1), selected: app.selected[i] });
    if (moments[at]) $(`caption-${i}`).textContent = caption(moments[at], i);
    map.draw();
  });
  const moments = app.agents[0]?.moments ?? [], now = moments[app.scrub ?? moments.length - 1];
  strip(moments);
  for (const button of document.querySelectorAll("[data-export]")) { button.disabled = !moments.length; button.title = moments.length ? "" : "after the first plan"; }
  $("empty").hidden = !isBlank() || !app.world;
  $("empty").textContent = "Click or drag on the map to paint a reward.";
  app.maps.forEach((map, i) => tree(map, i));
  if (now && !app.isPlaying) speak(now);
}

// The plans of an agent, at the moment that its map shows.
function tree(map, i) {
  const now = app.agents[i] && map.scene.moment, host = $(i ? "plans-1" : "plans"), summary = $(i ? "summary-1" : "summary");
  host.hidden = summary.hidden = !now;
  if (!now) return;
  const whose = app.agents.length > 1 ? (i ? "right: " : "left: ") : "";
  summary.textContent = whose + (now.isMissed ? "the plans of this step were not sent, as the page was busy" : figures(now));
  drawPlans(host, now, app.world.policies, app.selected[i], (k) => {
    app.selected[i] = map.scene.selected = k;
    for (const [r, row] of [...host.querySelectorAll(".row")].entries()) row.toggleAttribute("data-selected", rowOf(now, r) === k);
    map.draw();
  });
}

function figures(now) {
  const everyZero = now.plans.every(({ value }) => value === 0);
  const rounds = now.survivors.length ? ` · survivors ${now.survivors.join(", ")}` : "";
  return `${now.count} plans · ${now.draws ? `${now.draws.toLocaleString("en")} draws` : "exact"} · ${said(now.milliseconds)} ms${rounds}${everyZero ? ` · ${isBlank() ? "there is no reward" : "no sampled future reaches the reward"}: the choice is random` : ""}`;
}

const isBlank = () => !app.shapes.length && !app.formula.trim();

// The plan in row k of the tree, which is grouped by first policies.
function rowOf(moment, k) {
  const groups = new globalThis.Map();
  moment.plans.forEach(({ policies }, i) => { groups.set(policies[0], [...(groups.get(policies[0]) ?? []), i]); });
  return [...groups.values()].flat()[k];
}

function caption(moment, i) {
  const depth = i ? app.settings.second : app.settings.depth, plan = moment.plans[0];
  const met = moment.reached === null ? "" : ` · reward met in step ${moment.reached}`;
  const ended = moment.ended ? " · ended" : "";
  return `${depth ? `depth ${depth}` : "closed loop"} · step ${moment.t} · ${named(plan.policies, app.world.policies)} · return ${said(moment.return)}${met}${ended}`;
}

function strip(moments) {
  const canvas = $("strip"), ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight, pen = canvas.getContext("2d");
  canvas.width = width * ratio; canvas.height = height * ratio;
  pen.scale(ratio, ratio);
  const shown = Math.max(moments.length, 40), each = width / shown;
  moments.forEach(({ policy, reward }, i) => {
    pen.fillStyle = colour(policy);
    pen.fillRect(i * each, reward > 0 ? 0 : 4, Math.max(each - (each > 4 ? 1 : 0), 0.5), reward > 0 ? height : height - 8);
  });
  const at = app.scrub ?? moments.length - 1;
  $("moment").max = shown - 1;
  if (document.activeElement !== $("moment") || app.scrub === null) $("moment").value = at;
  $("moment").setAttribute("aria-valuetext", `step ${moments[at]?.t ?? 0}`);
}

function showTally(tally) {
  if (!tally?.some(({ episodes }) => episodes)) { $("tally").textContent = ""; return; }
  $("tally").textContent = tally.map(({ reached, episodes }, i) => `${tally.length > 1 ? (i ? "right " : "left ") : ""}${reached}/${episodes}`).join(" · ") + " reached";
}

// Simulated time per time, over the last two seconds.
let arrivals = [];
function pace(moment) {
  const now = performance.now();
  if (arrivals.length && moment.t <= arrivals.at(-1).t) arrivals = [];
  arrivals = [...arrivals.filter((one) => now - one.now < 2000), { now, t: moment.t }];
  const [first] = arrivals, elapsed = now - first.now;
  if (!app.isPlaying || elapsed < 700) return;
  app.rate = (moment.t - first.t) * app.world.seconds * 1000 / elapsed;
  $("pace").textContent = `${app.rate.toFixed(app.rate < 0.95 ? 2 : 1)}× real time`;
}

let spokenAt = 0;
function speak(moment) {
  if (performance.now() - spokenAt < 1500) return;
  spokenAt = performance.now();
  const plan = moment.plans[0];
  $("spoken").textContent = `Step ${moment.t}. Plan ${named(plan.policies, app.world.policies)}, value ${said(plan.value)}.`;
}

// ---- what one clicks

// Formulas that were sent and are not in force yet. Their answers are late: the page may have a newer one by now.
let sent = [], timer = null, sentAt = -Infinity;
function forgotten(formula) {
  const i = sent.indexOf(formula);
  sent.splice(0, i + 1);
  return i >= 0;
}

function rewardChanged() {
  app.body?.paint(app.shapes);
  show();
  if (timer || app.isOpening) return;
  timer = setTimeout(() => { timer = null; sentAt = performance.now(); sent.push(toText(app.shapes, app.formula)); send("change", { formula: sent.at(-1) }); }, Math.max(sentAt + 45 - performance.now(), 0));
}

// What takes long, in words: as the server says it, or that a plan is awaited. Short tasks are not mentioned.
const task = { said: "", isWaiting: false };
function busy(text) {
  clearTimeout(busy.timer);
  task.said = text;
  if (!text || $("status").textContent) sayTask();
  else busy.timer = setTimeout(sayTask, 200);
}

function wait(isWaiting) {
  clearTimeout(wait.timer);
  if (isWaiting && !task.isWaiting) wait.timer = setTimeout(() => { task.isWaiting = true; sayTask(); }, 300);
  if (isWaiting) return;
  task.isWaiting = false;
  sayTask();
}

function sayTask() {
  const text = task.said || (task.isWaiting ? "Planning" : "");
  $("status").textContent = text && `${text}…`;
}

function complain(said, isCalm = false) {
  const text = said || (app.isReplay ? "A recording: nothing can be changed." : "");
  $("error").hidden = !text;
  $("error").textContent = text;
  if (said && !isCalm) playing(false);
}

const LOST = {
  "too many pages are open": "Too many pages are open: close one.",
  "too many messages": "This page said too much at once. Connecting again…",
  [REJECTED]: "The server has another token now: open the address that ggpi studio has printed last.",
};

function connected(state, reason) {
  $("connection").dataset.state = state;
  $("connection").setAttribute("aria-label", state === "open" ? "Connected" : "Connection lost");
  $("connection").title = state === "open" ? "connected" : "connecting again";
  if (state !== "lost") { complain(""); return; }
  playing(false);
  busy("");
  wait(false);
  complain(LOST[reason] ?? "The server does not answer. Trying again…", true);
}

function playing(isPlaying) {
  app.isPlaying = isPlaying;
  arrivals = [];
  if (!isPlaying) $("pace").textContent = "";
  $("play").textContent = isPlaying ? "Pause" : "Play";
  $("play").setAttribute("aria-pressed", isPlaying);
}

const toggle = () => { if (!app.world || app.isReplay) return; app.scrub = null; playing(!app.isPlaying); link.send(app.isPlaying ? "play" : "pause"); };
const step = () => { app.scrub = null; playing(false); send("step"); };
const reset = () => { app.scrub = null; send("reset"); };
const setDepth = (depth) => send("change", { depth });

function scrubTo(i) {
  const last = (app.agents[0]?.moments.length ?? 1) - 1;
  if (app.isPlaying) toggle();
  app.scrub = Math.max(0, Math.min(i, last));
  app.selected = [0, 0];
  pose(app.agents[0]?.moments[app.scrub]);
  show();
}

function why(agent) {
  const moments = app.agents[agent]?.moments ?? [], now = moments[Math.min(app.scrub ?? Infinity, moments.length - 1)];
  if (!now) return;
  playing(false);
  link.send("pause");
  link.send("explain", { agent, t: now.t });
}

// A plan of an explained moment: its samples on the map.
function point({ agent, t }, policies) {
  const moments = app.agents[agent]?.moments ?? [], i = moments.findIndex((moment) => moment.t === t);
  const plan = moments[i]?.plans.findIndex((one) => String(one.policies) === String(policies));
  if (!(plan >= 0)) return;
  app.scrub = i;
  app.selected[agent] = plan;
  show();
}

function choose(tool) {
  app.tool = tool;
  for (const button of document.querySelectorAll("[data-tool]")) button.setAttribute("aria-pressed", button.dataset.tool === tool);
}

$("play").onclick = toggle;
$("step").onclick = step;
$("reset").onclick = reset;
$("world").onchange = () => { playing(false); Object.assign(app, { wanted: null, isOpening: true }); send("open", { world: $("world").value }); };
$("tools").onclick = ({ target }) => {
  if (target.dataset.tool) choose(target.dataset.tool);
  if (target.dataset.sign) { app.sign = Number(target.dataset.sign); for (const button of document.querySelectorAll("[data-sign]")) button.setAttribute("aria-pressed", Number(button.dataset.sign) === app.sign); }
};
$("fit").onclick = () => { view.fit(app.world.bounds); app.maps.forEach((map) => map.draw()); };
$("clear").onclick = () => { app.shapes = []; app.formula = $("formula").value = ""; rewardChanged(); };
$("depth").onclick = ({ target }) => { if (target.dataset.depth && !target.disabled) setDepth(Number(target.dataset.depth)); };
$("depth").onkeydown = (event) => {
  const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!move) return;
  const all = [...$("depth").children].filter((button) => !button.disabled), next = all.at((all.indexOf(event.target) + move) % all.length);
  next.focus(); next.click(); event.preventDefault();
};
for (const name of ["second", "speed"]) $(name).onchange = () => send("change", { [name]: Number($(name).value) });
$("planner").onchange = () => send("change", { planner: $("planner").value });
for (const name of ["samples", "gamma", "alpha"]) {
  $(name).oninput = () => { $(`${name}-said`).textContent = said(allowed(name)); };
  $(name).onchange = () => send("change", { [name]: allowed(name) });
}

// Models that were trained for some α have only those.
function allowed(name) {
  const wanted = Number($(name).value);
  return name !== "alpha" || app.world.free ? wanted : app.world.alphas.reduce((a, b) => (Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a));
}
$("repeat").onchange = () => send("change", { repeat: $("repeat").checked });
$("formula").oninput = () => { app.formula = $("formula").value; rewardChanged(); };
$("moment").oninput = () => { scrubTo(Number($("moment").value)); };
$("strip").onclick = ({ offsetX }) => scrubTo(Math.floor(offsetX / $("strip").clientWidth * (Number($("moment").max) + 1)));
["why", "why-1"].forEach((id, agent) => { $(id).onclick = () => why(agent); });
$("diagnose").onclick = () => link.send("diagnose");
$("help").onclick = () => $("keys").showModal();

for (const button of document.querySelectorAll("[data-copy]")) button.onclick = () => copy($(button.dataset.copy).textContent, button);
for (const button of document.querySelectorAll("[data-export]")) button.onclick = () => exported(button);
$("share").onclick = () => copy(location.href, $("share"));

async function copy(text, button) {
  button.words ??= button.textContent;
  button.textContent = await files.copied(text) ? "Copied" : "Not copied";
  clearTimeout(button.timer);
  button.timer = setTimeout(() => { button.textContent = button.words; }, 1200);
}

async function exported(button) {
  const { plansPng, svg } = files, name = `ggpi-${app.world.name}`, report = (share) => busy(`Drawing the episode: ${Math.round(100 * share)} %`);
  const [make, suffix] = {
    png: [() => files.png(app.maps[0]), ".png"], svg: [() => svg($("plans")), "-plans.svg"], plans: [() => plansPng(svg($("plans"))), "-plans.png"],
    json: [() => files.json(app), ".json"], gif: [() => files.gif(app, report), ".gif"],
    mp4: [() => files.mp4(app, report, () => busy("Making a film of it")), ".mp4"],
  }[button.dataset.export];
  button.disabled = true;
  try { files.save(await make(), name + suffix); } catch (error) { complain(error.message, true); }
  button.disabled = false;
  busy("");
}

// ---- tabs, theme, keys

const TABS = ["plans", "why", "models", "code", "export"].filter((name) => !$(`tab-${name}`).hidden);
function select(name) {
  for (const each of TABS) { const isIt = each === name; $(`tab-${each}`).setAttribute("aria-selected", isIt); $(`tab-${each}`).tabIndex = isIt ? 0 : -1; $(`panel-${each}`).hidden = !isIt; }
}
TABS.forEach((name, i) => {
  $(`tab-${name}`).onclick = () => select(name);
  $(`tab-${name}`).onkeydown = ({ key }) => { const move = { ArrowRight: 1, ArrowLeft: -1 }[key]; if (move) { const next = TABS.at((i + move) % TABS.length); select(next); $(`tab-${next}`).focus(); } };
});

function dress(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").setAttribute("aria-pressed", theme === "dark");
  $("theme").textContent = theme === "dark" ? "Light" : "Dark";
  if (app.body && app.world?.geometry) { app.body.build(app.world.geometry, theme === "dark"); app.body.render(); }
  show();
}
$("theme").onclick = () => { const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark"; localStorage.setItem("theme", next); dress(next); };
dress(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));

addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === " " && event.target.closest("button, [role=tab]")) return;
  const tools = { d: "disc", b: "box", l: "line", e: "erase", p: "put" };
  if (event.key === " ") toggle();
  else if (event.key === ".") step();
  else if (event.key === "n") reset();
  else if ("1230".includes(event.key)) setDepth(Number(event.key));
  else if (event.key in tools) choose(tools[event.key]);
  else return;
  event.preventDefault();
});
addEventListener("resize", show);

// ---- the address holds everything

function shareInAddress() {
  history.replaceState(null, "", `${location.pathname}${location.search}#${linkFields(app)}`);
}
