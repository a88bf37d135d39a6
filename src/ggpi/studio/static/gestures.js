// Pointers and keys on a map: drawing, moving, erasing, putting the agent, panning and zooming.
import { drawn, isInside, moved } from "./paint.js";

export function listen(map, app) {
  const { canvas, view } = map, pointers = new globalThis.Map();
  let gesture = null;

  const place = (event) => { const box = canvas.getBoundingClientRect(); return [(event.clientX - box.left) / map.factor, (event.clientY - box.top) / map.factor]; };
  const redraw = () => app.maps.forEach((each) => each.draw());
  const slack = () => 5 / map.scale[0];
  const hit = (at) => app.shapes.findLastIndex((shape) => isInside(shape, at, slack()));

  function erase(at) {
    const i = hit(at);
    if (i >= 0) { app.shapes.splice(i, 1); app.rewardChanged(); }
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    if (pointers.size === 2) { gesture = { kind: "pinch" }; map.draft = null; return; }
    const at = map.toPlane(place(event)), grabbed = hit(at);
    if (event.button === 1 || event.shiftKey || app.tool === "pan") gesture = { kind: "pan", last: place(event) };
    else if (app.isReplay) gesture = null;
    else if (app.tool === "erase" || app.tool === "put") gesture = { kind: app.tool, from: at };  // a second finger may follow
    else if (grabbed >= 0) gesture = { kind: "move", index: grabbed, last: at };
    else { gesture = { kind: "draw", from: at }; map.draft = drawn(app.tool, app.sign, at, at, view.span); redraw(); }
  });

  canvas.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) return;
    const before = [...pointers.values()], now = place(event);
    pointers.set(event.pointerId, now);
    const at = map.toPlane(now);
    if (gesture?.kind === "pinch" && pointers.size > 1) pinch(before, [...pointers.values()]);
    else if (gesture?.kind === "pan") pan(now);
    else if (gesture?.kind === "erase") erase(at);
    else if (gesture?.kind === "move") {
      app.shapes[gesture.index] = moved(app.shapes[gesture.index], at[0] - gesture.last[0], at[1] - gesture.last[1]);
      gesture.last = at;
      app.rewardChanged();
    } else if (gesture?.kind === "draw") map.draft = drawn(app.tool, app.sign, gesture.from, at, view.span);
    redraw();
  });

  function finish(event) {
    pointers.delete(event.pointerId);
    if (gesture?.kind === "erase") erase(gesture.from);
    if (gesture?.kind === "put") app.put(gesture.from);
    if (gesture?.kind === "draw" && map.draft) { app.shapes.push(map.draft); map.draft = null; app.rewardChanged(); }
    if (!pointers.size) gesture = null;
    redraw();
  }
  canvas.addEventListener("pointerup", finish);
  canvas.addEventListener("pointercancel", (event) => { gesture = map.draft = null; finish(event); });

  function pan(now) {
    const [sx, sy] = map.scale, { last } = gesture;
    view.centre = [view.centre[0] - (now[0] - last[0]) / sx, view.centre[1] + (now[1] - last[1]) / sy];
    gesture.last = now;
  }

  function pinch(before, after) {
    const size = ([a, b]) => Math.hypot(a[0] - b[0], a[1] - b[1]), middle = ([a, b]) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
    map.zoomAt(middle(after), size(after) / Math.max(size(before), 1));
    gesture.last = middle(before);
    pan(middle(after));
  }

  canvas.addEventListener("wheel", (event) => { event.preventDefault(); map.zoomAt(place(event), Math.exp(-0.0016 * event.deltaY)); redraw(); }, { passive: false });

  canvas.addEventListener("keydown", (event) => {
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }, step = view.span / view.zoom / 40;
    map.cursor ??= [...view.centre];
    if (event.key in arrows) {
      const [dx, dy] = arrows[event.key].map((part) => part * step);
      if (event.shiftKey) view.centre = [view.centre[0] + 3 * dx, view.centre[1] + 3 * dy];
      else map.cursor = [map.cursor[0] + dx, map.cursor[1] + dy];
    } else if (event.key === "Enter") {
      if (app.tool === "put") app.put(map.cursor);
      else if (app.tool === "erase") erase(map.cursor);
      else if (app.tool !== "pan" && !app.isReplay) { app.shapes.push(drawn(app.tool, app.sign, map.cursor, map.cursor, view.span)); app.rewardChanged(); }
    } else if (event.key === "Delete" || event.key === "Backspace") erase(map.cursor);
    else if (event.key === "+" || event.key === "=") map.zoomAt(map.toScreen(map.cursor), 1.25);
    else if (event.key === "-") map.zoomAt(map.toScreen(map.cursor), 0.8);
    else return;
    event.preventDefault();
    event.stopPropagation();
    redraw();
  });
  canvas.addEventListener("focus", () => map.draw());
  canvas.addEventListener("blur", () => map.draw());
}
