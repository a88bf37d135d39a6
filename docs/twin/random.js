// Random numbers from a seed: mulberry32, and normal ones from pairs of them.
export function uniform(seed) {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export function normals(random) {
  let spare = null;
  return () => {
    if (spare !== null) { const found = spare; spare = null; return found; }
    const size = Math.sqrt(-2 * Math.log(1 - random())), angle = 2 * Math.PI * random();
    spare = size * Math.sin(angle);
    return size * Math.cos(angle);
  };
}

export const seedOf = (...parts) => parts.reduce((seed, part) => Math.imul(seed ^ (part + 0x9e3779b9), 0x85ebca6b), 1);
