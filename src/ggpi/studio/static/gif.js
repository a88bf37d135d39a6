// Animated GIFs: a palette of 6 × 7 × 6 colours, and LZW with codes of up to 12 bits.
const LEVELS = [6, 7, 6];

function palette() {
  const table = new Uint8Array(3 * 256);
  for (let i = 0; i < 252; i++) {
    const parts = [Math.floor(i / 42), Math.floor(i / 6) % 7, i % 6];
    parts.forEach((part, k) => { table[3 * i + k] = Math.round(255 * part / (LEVELS[k] - 1)); });
  }
  return table;
}

function indices({ data }) {
  const found = new Uint8Array(data.length / 4);
  for (let i = 0; i < found.length; i++) {
    const [r, g, b] = LEVELS.map((levels, k) => Math.round(data[4 * i + k] / 255 * (levels - 1)));
    found[i] = 42 * r + 6 * g + b;
  }
  return found;
}

function compress(pixels) {
  const out = [], CLEAR = 256, END = 257;
  let bits = 0, held = 0, size = 9, next = 258, table = new globalThis.Map();
  const emit = (code) => { held |= code << bits; bits += size; while (bits >= 8) { out.push(held & 255); held >>= 8; bits -= 8; } };
  emit(CLEAR);
  let prefix = pixels[0];
  for (let i = 1; i < pixels.length; i++) {
    const key = prefix * 256 + pixels[i], known = table.get(key);
    if (known !== undefined) { prefix = known; continue; }
    emit(prefix);
    if (next === 4096) { emit(CLEAR); table = new globalThis.Map(); next = 258; size = 9; }
    else { if (next === 1 << size) size += 1; table.set(key, next); next += 1; }
    prefix = pixels[i];
  }
  emit(prefix);
  emit(END);
  if (bits) out.push(held & 255);
  return out;
}

// Pictures are drawn one after the other; the page does other things in between.
export async function encode(picture, count, width, height, milliseconds, report) {
  const short = (n) => [n & 255, n >> 8], parts = [];
  const text = (words) => [...words].map((letter) => letter.charCodeAt(0));
  parts.push(new Uint8Array([...text("GIF89a"), ...short(width), ...short(height), 0xf7, 0, 0]), palette());
  parts.push(new Uint8Array([0x21, 0xff, 11, ...text("NETSCAPE2.0"), 3, 1, 0, 0, 0]));
  for (let k = 0; k < count; k++) {
    parts.push(new Uint8Array([0x21, 0xf9, 4, 0, ...short(Math.round(milliseconds / 10)), 0, 0, 0x2c, 0, 0, 0, 0, ...short(width), ...short(height), 0, 8]));
    const packed = compress(indices(picture(k)));
    for (let i = 0; i < packed.length; i += 255) { const some = packed.slice(i, i + 255); parts.push(new Uint8Array([some.length, ...some])); }
    parts.push(new Uint8Array([0]));
    report((k + 1) / count);
    await new Promise((resolve) => setTimeout(resolve));
  }
  parts.push(new Uint8Array([0x3b]));
  return new Blob(parts, { type: "image/gif" });
}
