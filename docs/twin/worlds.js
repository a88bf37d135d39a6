// The two worlds of the page: what is planned in a state, and what happens when the agent acts.
import { evaluate, improve, optimal } from "./exact.js";
import { readFormula } from "./formula.js";
import { LinearPolicy, Model, evaluateSampled, readSafetensors } from "./network.js";
import { normals, seedOf, uniform } from "./random.js";

const SHOWN = 24, CLOUD = 60;

// Plans, best first, with the samples that are drawn on the map.
function moment(plans, chosen, nodes, draws, place) {
  const order = plans.map((_, i) => i).sort((a, b) => plans[b].value - plans[a].value).filter((i) => i !== chosen);
  const shown = [chosen, ...order].slice(0, SHOWN), wanted = [...new Set(shown.flatMap((i) => plans[i].path))];
  const clouds = wanted.map((id) => nodes[id].ends.slice(0, CLOUD).map(place));
  return {
    plans: shown.map((i) => ({ policies: plans[i].policies, value: plans[i].value, stderr: plans[i].stderr, samples: null, chosen: i === chosen, nodes: plans[i].path.map((id) => wanted.indexOf(id)) })),
    nodes: wanted.map((id, i) => ({ policy: nodes[id].policy, level: nodes[id].level, count: clouds[i].length })),
    places: Float32Array.from(clouds.flat(2)), placesShape: [clouds.flat().length, 2], count: plans.length, draws, survivors: [],
  };
}

const best = (values) => values.reduce((most, value, i) => (value > values[most] ? i : most), 0);

export class FourRooms {
  constructor(about) { this.about = about; this.kept = {}; }

  start(seed) { return seed ? Math.floor(uniform(seedOf(seed, 7))() * this.about.places.length) : this.about.start; }
  place = (x) => this.about.places[x];
  at(x, y) { const found = this.about.places.findIndex(([a, b]) => Math.abs(a - x) <= 0.5 && Math.abs(b - y) <= 0.5); return found < 0 ? null : found; }
  step(x, action) { return this.about.landing[x][action]; }
  reward(formula) { const f = readFormula(formula, this.about.names), rho = this.about.places.map(f); return (x) => rho[x]; }

  // Exact values, once for each reward and setting.
  solved(settings) {
    const { formula, gamma, alpha, depth } = settings, key = JSON.stringify([formula, gamma, alpha, depth]);
    if (!(key in this.kept)) {
      const { landing, places } = this.about, rho = places.map(readFormula(formula, this.about.names));
      const plans = evaluate(landing, gamma, alpha, depth, rho);
      if (Object.keys(this.kept).length > 8) this.kept = {};
      this.kept[key] = { plans, ...improve(plans), optimal: optimal(landing, gamma, rho) };
    }
    return this.kept[key];
  }

  // The greedy action, and what each plan is worth after it.
  decide(x, settings, seed) {
    const { plans, v, ways } = this.solved(settings), random = uniform(seed);
    const action = ways[x][Math.floor(random() * ways[x].length)], values = plans.map(({ q }) => q[x][action]);
    const chosen = best(values), nodes = [];
    if (!v.some((value) => value)) values.fill(0);
    const rows = plans.map(({ policies }, i) => ({ policies, value: values[i], stderr: 0, path: i === chosen || plans.length <= SHOWN ? this.cloud(x, action, policies, settings, random, nodes) : [] }));
    return { action, policy: action, ...moment(rows, chosen, nodes, 0, this.place) };
  }

  // Where the segments of a plan end, by walking.
  cloud(x, action, policies, { gamma, alpha }, random, nodes) {
    const { landing } = this.about;
    let from = Array(CLOUD).fill(x);
    return policies.map((k, level) => {
      const horizon = level === policies.length - 1 ? gamma : gamma * (1 - alpha);
      from = from.map((y) => { let at = landing[y][level ? k : action]; while (random() < horizon && landing[at][k] !== at) at = landing[at][k]; return at; });
      nodes.push({ policy: k, level, ends: from });
      return nodes.length - 1;
    });
  }

  // V and arrows on the map.
  values(settings) {
    const { v, ways, optimal: most } = this.solved(settings), { places } = this.about;
    if (!v.some((value) => value)) return {};
    const is = v.filter((value, x) => value >= most[x] - 1e-6 * Math.max(1, Math.abs(most[x]))).length;
    return { places: Float32Array.from(places.flat()), numbers: Float32Array.from(v), size: 1, ways: ways.map((all) => (all.length < 4 ? all.map((a) => this.about.moves[a]) : [])), exact: is };
  }

  raster(formula) {
    const { places } = this.about, reward = this.reward(formula);
    return { places: Float32Array.from(places.flat()), numbers: Float32Array.from(places, (_, x) => reward(x)), size: 1 };
  }
}

export class PointMass {
  constructor(about, buffer) {
    this.about = about;
    const arrays = readSafetensors(buffer), all = about.policies.map((_, k) => k);
    this.policies = all.map((k) => new LinearPolicy(arrays, k));
    this.models = { gamma: all.map((k) => new Model(arrays, "models.0", k)), beta: all.map((k) => new Model(arrays, "models.1", k)) };
  }

  start(seed) {
    if (!seed) return this.about.start;
    const random = uniform(seedOf(seed, 7));
    return [2 * random() - 1, 2 * random() - 1, 0, 0];
  }

  place = (state) => [state[0], state[1]];
  at(x, y) { return Math.abs(x) <= 1 && Math.abs(y) <= 1 ? [x, y, 0, 0] : null; }
  reward(formula) { return readFormula(formula, this.about.names); }
  values() { return {}; }

  // v′ = (1 − drag) v + force · a, p′ = p + v′, and walls stop it.
  step([x, y, vx, vy], action) {
    const { drag, force } = this.about, clip = (number) => Math.max(-1, Math.min(1, number));
    const v = [vx, vy].map((part, i) => (1 - drag) * part + force * clip(action[i])), p = [x + v[0], y + v[1]];
    return [...p.map(clip), ...v.map((part, i) => (Math.abs(p[i]) <= 1 ? part : 0))];
  }

  decide(state, settings, seed) {
    const { samples, depth } = settings, found = evaluateSampled(this, state, settings, this.reward(settings.formula), normals(uniform(seed)));
    const plans = found.plans.map(({ policies, totals, path }) => {
      const value = totals.reduce((sum, total) => sum + total, 0) / samples, squares = totals.reduce((sum, total) => sum + (total - value) ** 2, 0);
      return { policies, value, stderr: Math.sqrt(squares / Math.max(samples - 1, 1) / samples), path };
    });
    const chosen = best(plans.map(({ value }) => value)), draws = samples * found.nodes.length;
    const policy = plans[chosen].policies[0];
    return { action: found.actions[policy], policy, depth, ...moment(plans, chosen, found.nodes, draws, this.place) };
  }

  raster(formula) {
    const cells = 48, size = 2 / cells, reward = this.reward(formula), places = [], numbers = [];
    for (let j = 0; j < cells; j++) for (let i = 0; i < cells; i++) { const x = (i + 0.5) * size - 1, y = (j + 0.5) * size - 1; places.push(x, y); numbers.push(reward([x, y, 0, 0])); }
    return { places: Float32Array.from(places), numbers: Float32Array.from(numbers), size };
  }
}
