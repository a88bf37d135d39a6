// A map: walls, rewards, values, clouds of sampled states, the plan, and the agent with its trail.
import { NEGATIVE, POSITIVE, colour, dash, hatch, heat, isAgain, theme } from "./palette.js";
import { said } from "./plans.js";

const SIDE = 30, ENDS = 26;

export class View {
  // What the maps of all agents share: which part of the plane is shown.
  constructor() { this.centre = [0, 0]; this.zoom = 1; this.bounds = [-1, -1, 1, 1]; }

  fit(bounds) {
    this.bounds = bounds;
    this.centre = [(bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2];
    this.zoom = 1;
  }

  get span() { return Math.max(this.bounds[2] - this.bounds[0], this.bounds[3] - this.bounds[1]); }
}

export class Map {
  constructor(canvas, view) {
    this.canvas = canvas;
    this.view = view;
    this.scene = { walls: [], shapes: [], trail: [] };
    this.cursor = null;
    this.isDue = false;
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  // Everything is measured in pixels of a screen of ordinary size; on larger ones, text and all grow with the page's font.
  get factor() { return parseFloat(getComputedStyle(document.documentElement).fontSize) / 15; }
  get width() { return this.canvas.clientWidth / this.factor; }
  get height() { return this.canvas.clientHeight / this.factor; }

  // Pixels per unit on both axes; a plane of unlike coordinates is stretched to fill the canvas.
  get scale() {
    const { bounds, zoom } = this.view, width = this.width - 2 * SIDE, height = this.height - 2 * ENDS;
    const x = width / (bounds[2] - bounds[0]), y = height / (bounds[3] - bounds[1]);
    const alike = this.scene.isAlike !== false;
    return alike ? [zoom * Math.min(x, y), zoom * Math.min(x, y)] : [zoom * x, zoom * y];
  }

  toScreen([x, y]) {
    const [sx, sy] = this.scale, [cx, cy] = this.view.centre;
    return [this.width / 2 + (x - cx) * sx, this.height / 2 - (y - cy) * sy];
  }

  toPlane([px, py]) {
    const [sx, sy] = this.scale, [cx, cy] = this.view.centre;
    return [cx + (px - this.width / 2) / sx, cy - (py - this.height / 2) / sy];
  }

  zoomAt(place, factor) {
    const before = this.toPlane(place);
    this.view.zoom = Math.max(0.2, Math.min(40, this.view.zoom * factor));
    const after = this.toPlane(place);
    this.view.centre = [this.view.centre[0] + before[0] - after[0], this.view.centre[1] + before[1] - after[1]];
  }

  draw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => { this.isDue = false; this.paint(); });
  }

  paint(context = null, ratio = window.devicePixelRatio || 1) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    if (!context) {
      if (this.canvas.width !== Math.round(width * ratio)) this.canvas.width = Math.round(width * ratio);
      if (this.canvas.height !== Math.round(height * ratio)) this.canvas.height = Math.round(height * ratio);
      context = this.canvas.getContext("2d");
    }
    this.pen = context;
    this.ink = theme();
    const size = ratio * this.factor;
    context.setTransform(size, 0, 0, size, 0, 0);
    context.fillStyle = this.ink.card;
    context.fillRect(0, 0, this.width, this.height);
    this.cells(this.scene.values);
    this.grid();
    if (this.scene.hasFormula) this.signed(this.scene.rewards);
    this.walls();
    this.ways();
    this.shapes();
    this.trail();
    this.clouds();
    this.agent();
    this.pointer();
  }

  box([x0, y0, x1, y1]) {
    const [left, bottom] = this.toScreen([x0, y0]), [right, top] = this.toScreen([x1, y1]);
    return [left, top, right - left, bottom - top];
  }

  grid() {
    const { pen, ink } = this, [sx, sy] = this.scale, low = this.toPlane([0, this.height]), high = this.toPlane([this.width, 0]), all = this.view.bounds;
    const isBounded = this.scene.isBounded || this.scene.walls.length > 0;
    const [x0, y0] = isBounded ? [Math.max(low[0], all[0]), Math.max(low[1], all[1])] : low, [x1, y1] = isBounded ? [Math.min(high[0], all[2]), Math.min(high[1], all[3])] : high;
    const step = niceStep(Math.max(70 / sx, 1e-9)), stepY = sx === sy ? step : niceStep(Math.max(60 / sy, 1e-9));
    pen.lineWidth = 1;
    pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    pen.strokeStyle = ink.line;
    pen.globalAlpha = this.scene.walls.length ? 0.35 : 0.8;
    pen.beginPath();
    for (let x = Math.ceil(x0 / step) * step; x <= x1; x += step) { const [px] = this.toScreen([x, 0]); pen.moveTo(px, this.toScreen([x, y1])[1]); pen.lineTo(px, this.toScreen([x, y0])[1]); }
    for (let y = Math.ceil(y0 / stepY) * stepY; y <= y1; y += stepY) { const [, py] = this.toScreen([0, y]); pen.moveTo(this.toScreen([x0, y])[0], py); pen.lineTo(this.toScreen([x1, y])[0], py); }
    pen.stroke();
    pen.globalAlpha = 1;
    this.ticks = { step, stepY, x0, y0, x1, y1 };
  }

  labels() {
    const { pen, ink } = this, { step, stepY, x0, y0, x1, y1 } = this.ticks, height = this.height;
    pen.fillStyle = ink.muted;
    pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    pen.textAlign = "center";
    for (let x = Math.ceil(x0 / step) * step; x <= x1; x += step) { const [px] = this.toScreen([x, 0]); if (px > 30 && px < this.width - 34) pen.fillText(tidy(x), px, height - 5); }
    pen.textAlign = "left";
    for (let y = Math.ceil(y0 / stepY) * stepY; y <= y1; y += stepY) { const [, py] = this.toScreen([0, y]); if (py > 22 && py < height - 22) pen.fillText(tidy(y), 5, py + 4); }
    const [xName, yName] = this.scene.axes ?? ["x", "y"];
    pen.textAlign = "right";
    pen.fillText(`${xName} →`, this.width - 6, height - 5);
    pen.textAlign = "left";
    pen.fillText(`↑ ${yName}`, 5, 13);
    this.legend();
  }

  // What the colours of V mean.
  legend() {
    const { numbers } = this.scene.values ?? {};
    if (!numbers?.length) return;
    const { pen, ink, width } = this, [low, high] = range(numbers), right = width - 8 - pen.measureText(said(high)).width;
    pen.textAlign = "right";
    pen.fillStyle = ink.muted;
    pen.fillText(said(high), width - 6, 13);
    for (let i = 0; i < 48; i++) { pen.fillStyle = heat(i / 47); pen.fillRect(right - 52 + i, 4, 1.5, 10); }
    pen.fillStyle = ink.muted;
    pen.fillText(`V ${said(low)}`, right - 56, 13);
  }

  // Numbers at places, as coloured squares between their least and their largest.
  cells(raster) {
    if (!raster?.numbers?.length) return;
    const { pen } = this, { places, numbers, size } = raster, [low, high] = range(numbers);
    for (let i = 0; i < numbers.length; i++) {
      pen.fillStyle = heat((numbers[i] - low) / Math.max(high - low, 1e-9));
      const [left, top, width, height] = this.box([places[2 * i] - size / 2, places[2 * i + 1] - size / 2, places[2 * i] + size / 2, places[2 * i + 1] + size / 2]);
      pen.fillRect(left, top, width + 0.7, height + 0.7);
    }
  }

  signed(raster) {
    if (!raster?.numbers?.length) return;
    let most = 1e-9;
    for (const v of raster.numbers) if (Number.isFinite(v)) most = Math.max(most, Math.abs(v));
    const { pen } = this, { places, numbers, size } = raster, lines = pen.createPattern(hatch(), "repeat");
    for (let i = 0; i < numbers.length; i++) {
      if (!Number.isFinite(numbers[i]) || !numbers[i]) continue;
      const share = Math.abs(numbers[i]) / most, isBelow = numbers[i] < 0;
      const [left, top, width, height] = this.box([places[2 * i] - size / 2, places[2 * i + 1] - size / 2, places[2 * i] + size / 2, places[2 * i + 1] + size / 2]);
      pen.fillStyle = isBelow ? NEGATIVE : POSITIVE;
      pen.globalAlpha = 0.45 * share;
      pen.fillRect(left, top, width + 0.7, height + 0.7);
      if (!isBelow) continue;
      pen.fillStyle = lines;
      pen.globalAlpha = Math.sqrt(share);
      pen.fillRect(left, top, width, height);
    }
    pen.globalAlpha = 1;
  }

  walls() {
    const { pen, ink } = this;
    pen.fillStyle = ink.wall;
    for (const wall of this.scene.walls) { const [left, top, width, height] = this.box(wall); pen.fillRect(left - 0.3, top - 0.3, width + 0.6, height + 0.6); }
    if (!this.scene.walls.length && this.scene.isBounded) { pen.strokeStyle = ink.strong; pen.lineWidth = 1.5; pen.strokeRect(...this.box(this.view.bounds)); }
    this.labels();
  }

  // The actions of a greedy policy in each cell, as short arrows.
  ways() {
    const { places, ways, size } = this.scene.values ?? {};
    if (!ways) return;
    const { pen } = this, [sx, sy] = this.scale, reach = 0.32 * size, tip = 0.13 * size * sx;
    for (const [tone, width] of [["#ffffff", 3.6], ["#1f2328", 1.6]]) {
      pen.strokeStyle = tone; pen.lineWidth = width; pen.globalAlpha = 0.85; pen.lineCap = "round";
      pen.beginPath();
      ways.forEach((moves, i) => moves.forEach(([dx, dy]) => {
        const [x, y] = this.toScreen([places[2 * i], places[2 * i + 1]]), [ex, ey] = [x + dx * reach * sx, y - dy * reach * sy], turn = Math.atan2(-dy, dx);
        pen.moveTo(x, y); pen.lineTo(ex, ey);
        pen.moveTo(ex - tip * Math.cos(turn - 0.6), ey - tip * Math.sin(turn - 0.6)); pen.lineTo(ex, ey); pen.lineTo(ex - tip * Math.cos(turn + 0.6), ey - tip * Math.sin(turn + 0.6));
      }));
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  shapes() {
    for (const shape of [...this.scene.shapes, ...(this.draft ? [this.draft] : [])]) this.shape(shape);
  }

  shape({ kind, sign, numbers: n }) {
    const { pen } = this, [sx, sy] = this.scale, tone = sign > 0 ? POSITIVE : NEGATIVE;
    pen.beginPath();
    let middle = [n[0], n[1]];
    if (kind === "disc") { const [x, y] = this.toScreen(n); pen.ellipse(x, y, Math.max(n[2] * sx, 1), Math.max(n[2] * sy, 1), 0, 0, 2 * Math.PI); }
    else if (kind === "box") { const [x, y, w, h] = this.box([Math.min(n[0], n[2]), Math.min(n[1], n[3]), Math.max(n[0], n[2]), Math.max(n[1], n[3])]); pen.rect(x, y, w, h); middle = [(n[0] + n[2]) / 2, (n[1] + n[3]) / 2]; }
    else {
      const [ax, ay] = this.toScreen([n[0], n[1]]), [bx, by] = this.toScreen([n[2], n[3]]), r = n[4] * sx / 2, turn = Math.atan2(by - ay, bx - ax);
      pen.arc(ax, ay, r, turn + Math.PI / 2, turn - Math.PI / 2); pen.arc(bx, by, r, turn - Math.PI / 2, turn + Math.PI / 2); pen.closePath();
      middle = [(n[0] + n[2]) / 2, (n[1] + n[3]) / 2];
    }
    pen.globalAlpha = 0.2; pen.fillStyle = tone; pen.fill();
    pen.globalAlpha = 1; pen.lineCap = pen.lineJoin = "round";
    pen.font = "600 15px system-ui, 'DejaVu Sans', sans-serif"; pen.textAlign = "center";
    const [mx, my] = this.toScreen(middle), mark = sign > 0 ? "+" : "−";
    pen.strokeStyle = this.ink.card; pen.lineWidth = 4.5; pen.stroke(); pen.strokeText(mark, mx, my + 5);
    pen.strokeStyle = pen.fillStyle = tone; pen.lineWidth = 2; pen.setLineDash(sign > 0 ? [] : [5, 4]); pen.stroke(); pen.setLineDash([]);
    pen.fillText(mark, mx, my + 5);
  }

  trail() {
    const { pen } = this, trail = this.scene.trail;
    pen.lineWidth = 2.5; pen.lineCap = "round"; pen.globalAlpha = 0.8;
    for (let i = 1; i < trail.length; i++) {
      pen.strokeStyle = colour(trail[i - 1].policy); pen.setLineDash(dash(trail[i - 1].policy));
      pen.beginPath(); pen.moveTo(...this.toScreen(trail[i - 1].place)); pen.lineTo(...this.toScreen(trail[i].place)); pen.stroke();
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  // The samples of one plan, segment by segment, and its way through their means.
  clouds() {
    const { moment, selected = 0 } = this.scene;
    if (!moment) return;
    const { pen, ink } = this, plan = moment.plans[selected] ?? moment.plans[0];
    let at = moment.place;
    const offsets = offsetsOf(moment), way = [];
    plan.nodes.forEach((id, level) => {
      const { count, policy } = moment.nodes[id], last = level === plan.nodes.length - 1;
      let mx = 0, my = 0;
      pen.fillStyle = pen.strokeStyle = colour(policy);
      pen.lineWidth = 1.3;
      pen.globalAlpha = last ? 0.65 : 0.5;
      for (let k = 0; k < count; k++) {
        const x = moment.places[2 * (offsets[id] + k)], y = moment.places[2 * (offsets[id] + k) + 1];
        const jitter = this.scene.isGrid ? [0.32 * Math.sin(12.9 * k), 0.32 * Math.cos(7.7 * k)] : [0, 0];
        const [px, py] = this.toScreen([x + jitter[0], y + jitter[1]]);
        pen.beginPath(); pen.arc(px, py, last ? 3.1 : 2.2, 0, 2 * Math.PI);
        if (isAgain(policy)) pen.stroke(); else pen.fill();
        mx += x / count; my += y / count;
      }
      way.push({ from: at, to: [mx, my], policy });
      at = [mx, my];
    });
    pen.globalAlpha = 1;
    for (const { from, to, policy } of way) this.arrow(this.toScreen(from), this.toScreen(to), policy, ink.card);
  }

  arrow([ax, ay], [bx, by], policy, back) {
    const { pen } = this, length = Math.hypot(bx - ax, by - ay);
    if (length < 9) return;
    const turn = Math.atan2(by - ay, bx - ax), head = 9;
    for (const [width, stroke, dashes] of [[6, back, []], [3, colour(policy), dash(policy)]]) {
      pen.strokeStyle = stroke; pen.lineWidth = width; pen.lineCap = "round"; pen.lineJoin = "round"; pen.setLineDash(dashes);
      pen.beginPath(); pen.moveTo(ax, ay); pen.lineTo(bx, by);
      pen.moveTo(bx - head * Math.cos(turn - 0.5), by - head * Math.sin(turn - 0.5)); pen.lineTo(bx, by); pen.lineTo(bx - head * Math.cos(turn + 0.5), by - head * Math.sin(turn + 0.5));
      pen.stroke();
    }
    pen.setLineDash([]);
  }

  agent() {
    const { moment } = this.scene;
    if (!moment) return;
    const { pen, ink } = this, [x, y] = this.toScreen(moment.place);
    pen.beginPath(); pen.arc(x, y, 8, 0, 2 * Math.PI); pen.fillStyle = ink.ink; pen.fill();
    pen.lineWidth = 2.5; pen.strokeStyle = ink.card; pen.stroke();
    pen.beginPath(); pen.arc(x, y, 3.4, 0, 2 * Math.PI); pen.fillStyle = colour(moment.policy); pen.fill();
  }

  pointer() {
    if (!this.cursor || document.activeElement !== this.canvas) return;
    const { pen, ink } = this, [x, y] = this.toScreen(this.cursor);
    pen.strokeStyle = ink.accent; pen.lineWidth = 2;
    pen.beginPath(); pen.moveTo(x - 11, y); pen.lineTo(x + 11, y); pen.moveTo(x, y - 11); pen.lineTo(x, y + 11); pen.stroke();
  }
}

function range(numbers) {
  let low = Infinity, high = -Infinity;
  for (const v of numbers) { if (v < low) low = v; if (v > high) high = v; }
  return [low, high];
}

export function offsetsOf(moment) {
  let at = 0;
  return moment.nodes.map(({ count }) => { const start = at; at += count; return start; });
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((k) => k * power).find((step) => step >= least);
}

const tidy = (x) => String(Number(x.toFixed(6)) || 0);
