// The address of the page holds the world, the reward, all settings, and the start of the episode.
import { toText } from "./paint.js";

const NUMBERS = ["depth", "second", "samples", "gamma", "alpha", "speed", "seed"];

export function linkFields({ world, settings, shapes, formula }) {
  const { depth, second, planner, samples, gamma, alpha, speed, repeat, seed, put } = settings ?? {};
  const fields = new URLSearchParams({ world: world.name, reward: toText(shapes, formula) });
  for (const [name, value] of Object.entries({ depth, second, planner, samples })) if (value !== undefined) fields.set(name, value);
  if (world.free && gamma) fields.set("gamma", gamma);
  if ((world.free || world.alphas.length > 1) && alpha) fields.set("alpha", alpha);
  if (speed !== undefined && speed !== 1) fields.set("speed", speed);
  if (repeat) fields.set("repeat", 1);
  if (seed) fields.set("seed", seed);
  if (put) fields.set("put", put.join(","));
  return fields;
}

// The message that makes the same settings; those that a link leaves out stay as the world has them.
export function changeOf(fields) {
  const change = {};
  if (fields.has("reward")) change.formula = fields.get("reward");
  for (const name of NUMBERS) if (fields.has(name) && Number.isFinite(Number(fields.get(name)))) change[name] = Number(fields.get(name));
  if (fields.has("planner")) change.planner = fields.get("planner");
  if (fields.has("repeat")) change.repeat = fields.get("repeat") === "1";
  return change;
}

// Where the agents were put; null if they are where their episode starts.
export function placeOf(fields) {
  const place = (fields.get("put") ?? "").split(",").map(Number);
  return fields.get("put") && place.length === 2 && place.every(Number.isFinite) ? place : null;
}
