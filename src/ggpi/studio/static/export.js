// Files of what the page shows: the map, the plans, the episode, and its numbers.
import { encode } from "./gif.js";

const FRAMES = 120;

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function png(map) {
  return new Promise((resolve) => { map.paint(); map.canvas.toBlob(resolve, "image/png"); });
}

export function svg(host) {
  const copy = host.querySelector("svg").cloneNode(true), [, , width, height] = copy.getAttribute("viewBox").split(" "), style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = "text{font:12.5px sans-serif;fill:#1f2328}.faint{fill:#59616b}.link{fill:none;stroke:#8a929c}.whisker{stroke:#1f2328}.back{fill:none}.out text{fill:#59616b}.out .bar{opacity:.25}";
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.prepend(style);
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}

// The picture of an SVG, twice as large.
export async function plansPng(blob) {
  const picture = new Image();
  picture.src = URL.createObjectURL(blob);
  await picture.decode();
  const sheet = Object.assign(document.createElement("canvas"), { width: 2 * picture.width, height: 2 * picture.height }), pen = sheet.getContext("2d");
  pen.fillStyle = "#ffffff";
  pen.fillRect(0, 0, sheet.width, sheet.height);
  pen.drawImage(picture, 0, 0, sheet.width, sheet.height);
  URL.revokeObjectURL(picture.src);
  return new Promise((resolve) => { sheet.toBlob(resolve, "image/png"); });
}

// Whether a text is in the clipboard now. Pages of other computers have the old way only.
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.body.appendChild(Object.assign(document.createElement("textarea"), { value: text }));
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
}

export function json(app) {
  const plain = ({ places, poses, nodes, arrays, placesShape, posesShape, ...rest }) => rest;
  const content = { format: "ggpi studio episode 1", world: app.world.name, policies: app.world.policies, settings: app.settings, agents: app.agents.map(({ moments }) => moments.map(plain)) };
  return new Blob([JSON.stringify(content, null, 1)], { type: "application/json" });
}

// The same episode, encoded by the server.
export async function mp4(app, report, onDrawn) {
  const pictures = await gif(app, report);
  onDrawn?.();
  const answer = await fetch(`/film${location.search}`, { method: "POST", body: pictures });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.blob();
}

// The episode of the first agent, at most FRAMES pictures of it, drawn by the map itself; `report` is told the share that is done.
export async function gif(app, report = () => {}) {
  const map = app.maps[0], moments = [...app.agents[0].moments], width = 480, height = Math.round(480 * map.canvas.clientHeight / map.canvas.clientWidth);
  const sheet = new OffscreenCanvas(width, height), pen = sheet.getContext("2d", { willReadFrequently: true }), every = Math.ceil(moments.length / FRAMES);
  const picture = (i) => {
    const scene = map.scene;
    map.scene = { ...scene, moment: moments[i * every], trail: moments.slice(0, i * every + 1), selected: 0 };
    map.paint(pen, width / map.canvas.clientWidth);
    map.scene = scene;
    return pen.getImageData(0, 0, width, height);
  };
  const found = await encode(picture, Math.ceil(moments.length / every), width, height, Math.max(1000 * app.world.seconds * every, 40), report);
  map.draw();
  return found;
}
