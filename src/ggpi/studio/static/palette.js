// Colours of policies: Paul Tol's "bright" scheme, safe for colour-blind readers, and two more.
export const POLICIES = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777", "#994400"];
export const POSITIVE = "#117733", NEGATIVE = "#aa3311";

export const colour = (policy) => POLICIES[policy % POLICIES.length];

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
