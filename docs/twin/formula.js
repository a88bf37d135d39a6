// Reward formulas: the grammar of ggpi.rewards.grammar, as a function of a state. Nothing in it is run as JavaScript.
const TOKEN = /\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\*\*|.))/gs;
const FUNCTIONS = { abs: Math.abs, exp: Math.exp, log: Math.log, sqrt: Math.sqrt, sin: Math.sin, cos: Math.cos, tanh: Math.tanh };
const PAIRS = { min: Math.min, max: Math.max };
const SHAPES = { disc: 3, box: 4, line: 5 };
const NESTED = 24, LONGEST = 4000;

const INSIDE = {
  disc: (x, y, [cx, cy, r]) => (x - cx) ** 2 + (y - cy) ** 2 <= r ** 2,
  box: (x, y, [a, b, c, d]) => Math.min(a, c) <= x && x <= Math.max(a, c) && Math.min(b, d) <= y && y <= Math.max(b, d),
  line: (x, y, [a, b, c, d, width]) => {
    const dx = c - a, dy = d - b, share = Math.max(0, Math.min(1, ((x - a) * dx + (y - b) * dy) / Math.max(dx * dx + dy * dy, 1e-12)));
    return (x - a - share * dx) ** 2 + (y - b - share * dy) ** 2 <= (width / 2) ** 2;
  },
};

// The function of a state that a text describes; throws an Error with the place of a mistake.
export function readFormula(text, names) {
  if (text.length > LONGEST) throw new Error(`a formula has at most ${LONGEST} characters`);
  const tokens = [...text.trimEnd().matchAll(TOKEN)].map((match) => ({ number: match[1], name: match[2], sign: match[3] === "**" ? "^" : match[3], place: match.index + match[0].length - (match[1] ?? match[2] ?? match[3]).length }));
  let at = 0, depth = 0;
  const here = () => tokens[at] ?? {};
  const take = (...signs) => (signs.includes(here().sign) ? tokens[at++].sign : null);
  const mistake = (expected) => new Error(`at character ${(here().place ?? text.length) + 1} of '${text}': expected ${expected}, got ${at < tokens.length ? `'${here().number ?? here().name ?? here().sign}'` : "the end"}`);
  const need = (sign) => { if (!take(sign)) throw mistake(`'${sign}'`); };
  const nested = (part) => { if (++depth > NESTED) throw new Error(`the formula has more than ${NESTED} nested brackets or powers`); const found = part(); depth -= 1; return found; };

  function comparison() {
    return nested(() => {
      const one = sum(), sign = take("<", ">");
      if (!sign) return one;
      const two = sum();
      return sign === "<" ? (s) => Number(one(s) < two(s)) : (s) => Number(one(s) > two(s));
    });
  }
  function sum() {
    let found = product();
    for (let sign = take("+", "-"); sign; sign = take("+", "-")) { const one = found, two = product(); found = sign === "+" ? (s) => one(s) + two(s) : (s) => one(s) - two(s); }
    return found;
  }
  function product() {
    let found = signed();
    for (let sign = take("*", "/"); sign; sign = take("*", "/")) { const one = found, two = signed(); found = sign === "*" ? (s) => one(s) * two(s) : (s) => one(s) / two(s); }
    return found;
  }
  function signed() {
    let isNegative = false;
    for (let sign = take("+", "-"); sign; sign = take("+", "-")) isNegative = isNegative !== (sign === "-");
    const found = power();
    return isNegative ? (s) => -found(s) : found;
  }
  function power() {
    const base = atom();
    if (!take("^")) return base;
    const exponent = nested(signed);
    return (s) => base(s) ** exponent(s);
  }
  function number() {
    const found = Number(tokens[at++].number);
    if (!(Math.abs(found) <= 1e9)) throw new Error("numbers are at most 1e9");
    return found;
  }
  function atom() {
    if (take("(")) { const found = comparison(); need(")"); return found; }
    const { number: digits, name, place } = here();
    if (digits !== undefined) { const found = number(); return () => found; }
    if (name === undefined) throw mistake("a number, a coordinate or a function");
    at += 1;
    const isCall = here().sign === "(" && (name in FUNCTIONS || name in PAIRS || name in SHAPES);
    if (isCall) return call(name);
    if (names.includes(name)) { const k = names.indexOf(name); return (s) => s[k]; }
    if (name === "pi") return () => Math.PI;
    throw new Error(`at character ${place + 1}: '${name}' is neither a coordinate (${names.join(", ")}) nor a function`);
  }
  function call(name) {
    need("(");
    const part = name in SHAPES ? plain : comparison, parts = [part()];
    while (take(",")) parts.push(part());
    const count = SHAPES[name] ?? (name in PAIRS ? 2 : 1);
    if (parts.length !== count) throw new Error(`${name} takes ${count} arguments, got ${parts.length}`);
    need(")");
    if (name in SHAPES) return (s) => Number(INSIDE[name](s[0], s[1], parts));
    if (name in PAIRS) return (s) => PAIRS[name](parts[0](s), parts[1](s));
    return (s) => FUNCTIONS[name](parts[0](s));
  }
  function plain() {
    const sign = take("-") ? -1 : 1;
    if (here().number === undefined) throw mistake("a plain number");
    return sign * number();
  }

  if (!tokens.length) throw new Error("the formula is empty; write for example exp(-x^2)");
  const found = comparison();
  if (at < tokens.length) throw mistake("an operator such as + or *");
  return found;
}
