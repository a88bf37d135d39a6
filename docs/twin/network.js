// One-pass models of ggpi.distil, from their safetensors file: x′ = x + mean + scale · g(ε|x, a), ε ∼ N(0, I).
//
// g is the field network of ggpi.ghm.velocity at time 0: residual layers over ε, modulated by (x, a). Rows go through one
// after the other; a network of 48 units takes some microseconds.

export function readSafetensors(buffer) {
  const size = Number(new DataView(buffer).getBigUint64(0, true)), found = {};
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  for (const [name, about] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    if (about.dtype !== "F32") throw new Error(`${name} is of type ${about.dtype}, expected F32`);
    const [start, end] = about.data_offsets;
    found[name] = { shape: about.shape, data: new Float32Array(buffer.slice(8 + size + start, 8 + size + end)) };
  }
  return found;
}

// Part i of an array with a leading axis of policies.
function part({ shape, data }, i) {
  const size = shape.slice(1).reduce((a, b) => a * b, 1);
  return { shape: shape.slice(1), data: data.subarray(i * size, (i + 1) * size) };
}

function dense(x, weight, bias) {
  const [rows, columns] = weight.shape, w = weight.data, y = Float64Array.from(bias.data);
  for (let i = 0; i < rows; i++) {
    const xi = x[i], from = i * columns;
    if (xi) for (let j = 0; j < columns; j++) y[j] += xi * w[from + j];
  }
  return y;
}

const silu = (x) => x / (1 + Math.exp(-x));

function mlp(x, layers) {
  layers.forEach(([weight, bias], i) => { x = dense(x, weight, bias); if (i < layers.length - 1) x = x.map(silu); });
  return x;
}

export class Model {
  // arrays: of readSafetensors; prefix: models.0 for γ, models.1 for β; k: the policy.
  constructor(arrays, prefix, k) {
    const of = (name) => part(arrays[`${prefix}.${name}`], k), has = (name) => `${prefix}.${name}` in arrays;
    const pairs = (name) => { const found = []; for (let i = 0; has(`${name}weights.${i}`); i++) found.push([of(`${name}weights.${i}`), of(`${name}biases.${i}`)]); return found; };
    this.frame = Object.fromEntries(["state_mean", "state_scale", "action_mean", "action_scale", "target_mean", "target_scale"].map((name) => [name, of(`frame.${name}`).data]));
    this.inner = [of("network.inner"), of("network.inner_bias")];
    this.outer = [of("network.outer"), of("network.outer_bias")];
    this.layers = pairs("network.");
    this.context = pairs("network.context.");
    this.width = this.inner[0].shape[1];
    const clock = pairs("network.clock."), waves = clock[0][0].shape[0] / 2;
    this.time = this.bounded(mlp([...Array(waves).fill(0), ...Array(waves).fill(1)], clock));
  }

  // Scales between −4 and 4; a scale and a shift follow one another, layer by layer.
  bounded(code) {
    return code.map((x, i) => (Math.floor(i / this.width) % 2 ? x : 4 * Math.tanh(x / 4)));
  }

  encode(state, action) {
    const f = this.frame, inputs = [...state].map((x, i) => (x - f.state_mean[i]) / f.state_scale[i]);
    for (let i = 0; i < action.length; i++) inputs.push((action[i] - f.action_mean[i]) / f.action_scale[i]);
    const code = this.bounded(mlp(inputs, this.context));
    for (let i = 0; i < code.length; i++) code[i] += this.time[i];
    return code;
  }

  // A sample from noise; code is that of (state, action), for many samples of one pair.
  push(state, action, noise, code = this.encode(state, action)) {
    let h = dense(noise, ...this.inner);
    const { width } = this, modulated = new Float64Array(width);
    this.layers.forEach(([weight, bias], layer) => {
      const scale = 2 * layer * width, shift = scale + width;
      for (let i = 0; i < width; i++) modulated[i] = silu(h[i] * (1 + code[scale + i]) + code[shift + i]);
      const more = dense(modulated, weight, bias);
      for (let i = 0; i < width; i++) h[i] += more[i];
    });
    const y = dense(h.map(silu), ...this.outer);
    return y.map((part, i) => state[i] + this.frame.target_mean[i] + this.frame.target_scale[i] * part);
  }
}

// a = clip(K x + k + noise · ε).
export class LinearPolicy {
  constructor(arrays, k) {
    this.gain = arrays[`policies.${k}.gain`];
    this.bias = arrays[`policies.${k}.bias`].data;
    this.noise = arrays[`policies.${k}.noise`].data;
  }

  sample(state, normal) {
    const size = state.length;
    return Array.from(this.bias, (bias, i) => {
      let mean = bias;
      for (let j = 0; j < size; j++) mean += this.gain.data[i * size + j] * state[j];
      return Math.max(-1, Math.min(1, mean + this.noise[i] * normal()));
    });
  }
}

// The value of every plan of a depth from one state, by samples: the estimator of Theorem 3.2 for a reward of entering a
// state. Plans with a common prefix share its samples.
//
//   Q = 1/(1−γ) Σ wₘ ρ(X⁽ᵐ⁾),  wₘ = (1−γ)/(1−β) ((γ−β)/(1−β))ᵐ⁻¹,  wₙ = ((γ−β)/(1−β))ⁿ⁻¹
export function evaluateSampled({ policies, models }, state, { gamma, alpha, depth, samples }, rho, normal) {
  const beta = gamma * (1 - alpha), goesOn = (gamma - beta) / (1 - beta), size = state.length;
  const noise = () => Float64Array.from({ length: size }, normal);
  const actions = policies.map((policy) => policy.sample(state, normal));
  const root = { policies: [], ends: Array(samples).fill(state), totals: new Float64Array(samples), path: [] };
  let level = [root];
  const nodes = [];
  for (let m = 1; m <= depth; m++) {
    const isLast = m === depth, w = goesOn ** (m - 1) * (isLast ? 1 : (1 - gamma) / (1 - beta)) / (1 - gamma);
    level = level.flatMap((parent) => policies.map((policy, k) => {
      const model = models[isLast ? "gamma" : "beta"][k], code = m === 1 ? model.encode(state, actions[k]) : undefined;
      const ends = parent.ends.map((x) => { const a = m === 1 ? actions[k] : policy.sample(x, normal); return model.push(x, a, noise(), code); });
      nodes.push({ policy: k, level: m - 1, ends });
      return { policies: [...parent.policies, k], ends, totals: parent.totals.map((total, i) => total + w * rho(ends[i])), path: [...parent.path, nodes.length - 1] };
    }));
  }
  return { actions, nodes, plans: level };
}
