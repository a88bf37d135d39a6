// Exact values of switching policies in a grid whose moves are certain: Theorem 3.2, from the last segment to the first.
//
//   g(x, a) = v(landing(x, a)),  v = (1−β) f + β v∘next      the model of a policy that always moves in one direction,
//   f = w ((1−α) r₁ + α r₂) + (1−w) g′(·, π₂),  w = (1−γ)/(1−β)      applied to what comes after its segment,
//   Q = r(x, a) + γ/(1−γ) g(x, a)
//
// Policy k always takes action k. Its chain of states ends at a wall, so v is solved by walking back from there.

export function visits(landing, k, horizon, f) {
  const v = new Float64Array(f.length).fill(NaN);
  for (let start = 0; start < f.length; start++) {
    const chain = [];
    let x = start;
    while (Number.isNaN(v[x]) && landing[x][k] !== x) { chain.push(x); x = landing[x][k]; }
    if (Number.isNaN(v[x])) v[x] = f[x];
    while (chain.length) { const before = chain.pop(); v[before] = (1 - horizon) * f[before] + horizon * v[x]; x = before; }
  }
  return v;
}

// Plans as lists of policies, and q[plan][state][action]; rho is the reward of entering each state.
export function evaluate(landing, gamma, alpha, depth, rho) {
  const states = landing.length, actions = landing[0].length, beta = gamma * (1 - alpha), w = (1 - gamma) / (1 - beta);
  const r = landing.map((row) => row.map((next) => rho[next])), heads = [...Array(actions).keys()];
  let plans = heads.map((k) => ({ policies: [k], v: visits(landing, k, gamma, r.map((row) => row[k])) }));
  for (let length = 2; length <= depth; length++) {
    plans = heads.flatMap((k) => plans.map(({ policies, v }) => {
      const next = policies[0];
      const f = Float64Array.from({ length: states }, (_, x) => w * ((1 - alpha) * r[x][k] + alpha * r[x][next]) + (1 - w) * v[landing[x][next]]);
      return { policies: [k, ...policies], v: visits(landing, k, beta, f) };
    }));
  }
  const scale = gamma / (1 - gamma);
  return plans.map(({ policies, v }) => ({ policies: shortened(policies), q: landing.map((row, x) => row.map((next, a) => r[x][a] + scale * v[next])) }));
}

// The greedy policy: V and the best actions of each state, several where they are equal.
export function improve(plans) {
  const states = plans[0].q.length, v = new Float64Array(states), ways = [];
  for (let x = 0; x < states; x++) {
    const best = plans[0].q[x].map((_, a) => Math.max(...plans.map(({ q }) => q[x][a])));
    v[x] = Math.max(...best);
    const slack = 1e-9 * Math.max(1, Math.abs(v[x]));
    ways.push(best.flatMap((value, a) => (value >= v[x] - slack ? [a] : [])));
  }
  return { v, ways };
}

// The values of acting optimally, by value iteration.
export function optimal(landing, gamma, rho) {
  let v = new Float64Array(landing.length);
  for (let change = 1; change > 1e-10;) {
    const next = Float64Array.from(landing, (row) => Math.max(...row.map((to) => rho[to] + gamma * v[to])));
    change = next.reduce((most, value, x) => Math.max(most, Math.abs(value - v[x])), 0);
    v = next;
  }
  return v;
}

// Without repeats of the last policy, which change nothing.
function shortened(policies) {
  let end = policies.length;
  while (end > 1 && policies[end - 1] === policies[end - 2]) end -= 1;
  return policies.slice(0, end);
}
