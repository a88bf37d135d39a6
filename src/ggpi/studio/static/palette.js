// Colours of policies that colour-blind readers can tell apart: tests/unit/studio/test_palette.py measures how well.
export const POLICIES = ["#e55aa0", "#1d6b12", "#6cd1ff", "#8f3c8c", "#d6c356", "#706b6e", "#8b8d2b", "#b89886"];
export const POSITIVE = "#0a7d6c", NEGATIVE = "#c2410c";

// After eight policies colours come again, with rings for dots and dashes for lines.
export const colour = (policy) => POLICIES[policy % POLICIES.length];
export const isAgain = (policy) => policy >= POLICIES.length;
export const dash = (policy) => (isAgain(policy) ? [3, 5] : []);

// Negative rewards are hatched, so that their sign is not said by a colour alone.
let lines = null;
export function hatch() {
  if (lines) return lines;
  lines = new OffscreenCanvas(7, 7);
  const pen = lines.getContext("2d");
  pen.strokeStyle = NEGATIVE;
  pen.lineWidth = 1.1;
  for (const shift of [-7, 0, 7]) { pen.beginPath(); pen.moveTo(shift - 1, 8); pen.lineTo(shift + 8, -1); pen.stroke(); }
  return lines;
}

export function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return { paper: of("--paper"), card: of("--card"), ink: of("--ink"), muted: of("--muted"), line: of("--line"), strong: of("--line-strong"), hover: of("--hover"), wall: of("--wall"), accent: of("--accent") };
}

// From pale to dark blue, readable in both themes: V on the map.
export function heat(share) {
  const stops = [[240, 244, 248], [189, 215, 231], [107, 174, 214], [49, 130, 189], [8, 69, 128]];
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2), rest = at - i;
  const mixed = stops[i].map((part, k) => Math.round(part + rest * (stops[i + 1][k] - part)));
  return `rgb(${mixed.join(",")})`;
}
