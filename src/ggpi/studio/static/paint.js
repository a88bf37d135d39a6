// Painted rewards: shapes on the map, and the formula that says the same.
const NUMBER = String.raw`\s*([+-]?\d*\.?\d+(?:e[+-]?\d+)?)\s*`;
const COUNTS = { disc: 3, box: 4, line: 5 };

export const rounded = (x) => String(Number(x.toPrecision(4)));

export function toText(shapes, formula) {
  const parts = shapes.map(({ kind, sign, numbers }, i) => {
    const call = `${kind}(${numbers.map(rounded).join(", ")})`;
    return sign < 0 ? (i ? ` - ${call}` : `-${call}`) : (i ? ` + ${call}` : call);
  });
  const painted = parts.join("");
  const own = formula.trim();
  if (!own) return painted || "0";
  return painted ? `${painted} + (${own})` : own;
}

// The inverse: shapes, and what is left as a formula.
export function fromText(text) {
  const shapes = [];
  let rest = text.trim();
  while (rest) {
    const found = rest.match(/^([+-]?)\s*(disc|box|line)\(([^()]*)\)\s*/);
    if (!found) break;
    const numbers = found[3].split(",").map(Number);
    if (numbers.length !== COUNTS[found[2]] || numbers.some((x) => !Number.isFinite(x))) break;
    const after = rest.slice(found[0].length);
    if (after && !/^[+-]/.test(after)) break;
    shapes.push({ kind: found[2], sign: found[1] === "-" ? -1 : 1, numbers });
    rest = after;
  }
  const own = rest.match(/^\+\s*\((.*)\)$/s);
  if (rest === "0" && !shapes.length) rest = "";
  return { shapes, formula: own && shapes.length ? own[1] : rest };
}

export function isInside({ kind, numbers: n }, [x, y], slack = 0) {
  if (kind === "disc") return Math.hypot(x - n[0], y - n[1]) <= n[2] + slack;
  if (kind === "box") {
    return x >= Math.min(n[0], n[2]) - slack && x <= Math.max(n[0], n[2]) + slack && y >= Math.min(n[1], n[3]) - slack && y <= Math.max(n[1], n[3]) + slack;
  }
  const dx = n[2] - n[0], dy = n[3] - n[1];
  const share = Math.max(0, Math.min(1, ((x - n[0]) * dx + (y - n[1]) * dy) / Math.max(dx * dx + dy * dy, 1e-12)));
  return Math.hypot(x - n[0] - share * dx, y - n[1] - share * dy) <= n[4] / 2 + slack;
}

export function moved(shape, dx, dy) {
  const n = [...shape.numbers];
  n[0] += dx; n[1] += dy;
  if (shape.kind !== "disc") { n[2] += dx; n[3] += dy; }
  return { ...shape, numbers: n };
}

// A shape from where the pointer went down to where it is; a click alone makes one of a useful size.
export function drawn(tool, sign, from, to, span) {
  const apart = Math.hypot(to[0] - from[0], to[1] - from[1]), isClick = apart < span / 150;
  if (tool === "disc") return { kind: "disc", sign, numbers: [...from, isClick ? span / 22 : apart] };
  if (tool === "box") {
    const half = span / 22, ends = isClick ? [from[0] - half, from[1] - half, from[0] + half, from[1] + half] : [...from, ...to];
    return { kind: "box", sign, numbers: ends };
  }
  const end = isClick ? [from[0] + span / 6, from[1]] : to;
  return { kind: "line", sign, numbers: [...from, ...end, span / 24] };
}
