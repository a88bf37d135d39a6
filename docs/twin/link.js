// In place of the studio's WebSocket: the same messages, answered in this page. See ggpi.studio.protocol.
import { seedOf } from "./random.js";
import { FourRooms, PointMass } from "./worlds.js";

const MAKE = {
  "four-rooms": (about) => new FourRooms(about),
  "point-mass": async (about) => new PointMass(about, await (await fetch(new URL("point-mass.safetensors", import.meta.url))).arrayBuffer()),
};

// As those of the studio's link.js: there is one page for both.
export const VERSION = 1;
export const REJECTED = "rejected";

export class Link {
  constructor(onFrame, onState) {
    Object.assign(this, { onFrame, onState, made: {}, world: null, episodes: [], isPlaying: false, isStale: false, timer: null });
    this.ready = this.load();
  }

  async load() {
    this.abouts = await (await fetch(new URL("worlds.json", import.meta.url))).json();
    this.onState("open");
    this.say("hello", { version: VERSION, worlds: Object.keys(this.abouts), replay: false });
  }

  say(type, fields = {}) { this.onFrame({ type, ...fields }); }

  // Messages are answered one after the other, and a mistake ends in a message too.
  send(type, fields = {}) {
    this.ready = this.ready.then(() => this[type](fields)).catch((error) => { this.isPlaying = this.isStale = false; this.say("error", { text: error.message }); }).then(() => this.soon());
  }

  async open({ world }) {
    this.say("status", { text: `Opening ${world}` });
    this.made[world] ??= await MAKE[world](this.abouts[world]);
    this.world = this.made[world];
    const { about } = this.world;
    this.settings = { formula: about.formula, depth: 2, second: -1, planner: "exhaustive", samples: about.samples, gamma: about.gamma, alpha: about.alphas[0], speed: 1, repeat: false };
    this.isPlaying = false;
    this.say("world", about);
    this.begin(0);
    this.say("status", { text: "" });
  }

  change(fields) {
    const settings = { ...this.settings, ...fields };
    if (![1, 2, 3].includes(settings.depth) || ![-1, 1, 2, 3].includes(settings.second)) throw new Error("the closed loop needs the studio itself: choose depth 1, 2 or 3");
    this.world.reward(settings.formula);
    const isOther = (names) => names.some((name) => settings[name] !== this.settings[name]), isNew = isOther(["second"]);
    if (isOther(["formula"])) this.episodes = this.episodes.map(({ state }) => fresh(state));
    if (isOther(["formula", "depth", "samples", "gamma", "alpha"])) this.tally = nothing(this.episodes);
    this.settings = settings;
    if (isNew) this.begin(this.seed); else this.tell();
    this.isStale = true;
  }

  play() { this.isPlaying = true; }
  pause() { this.isPlaying = false; }
  step() { this.isPlaying = false; this.move(); }
  reset() { this.begin(this.seed + 1); }
  explain() { throw new Error("Explanations and comparisons with simulation need the studio itself: ggpi studio"); }
  diagnose() { this.explain(); }

  put({ x, y }) {
    const state = this.world.at(x, y);
    if (state === null) throw new Error("the agent cannot be put there");
    this.episodes = this.episodes.map(() => fresh(state));
    this.isStale = true;
    this.tell();
  }

  begin(seed) {
    const depths = this.settings.second >= 0 ? 2 : 1;
    this.seed = seed;
    this.episodes = [...Array(depths)].map(() => fresh(this.world.start(seed)));
    if (seed === 0 || this.tally?.length !== depths) this.tally = nothing(this.episodes);
    this.isStale = true;
    this.tell();
  }

  settingsOf(agent) { return agent ? { ...this.settings, depth: this.settings.second } : this.settings; }

  tell() {
    const { about } = this.world, { formula, depth, samples, gamma, alpha } = this.settings, state = this.episodes[0].state;
    const numbers = Array.isArray(state) ? `[${state.map((x) => Number(x.toFixed(4))).join(", ")}]` : String(state);
    const fields = { formula: JSON.stringify(formula), names: `(${about.names.map((name) => `"${name}"`).join(", ")})`, state: numbers, gamma, alpha, depth, samples };
    const filled = (text) => Object.entries(fields).reduce((found, [name, value]) => found.replaceAll(`{${name}}`, String(value)), text);
    const place = about.places ? about.places[state] : state;
    const said = { ...fields, formula: formula.replaceAll("'", ""), place: place.join(",") };
    const command = Object.entries(said).reduce((found, [name, value]) => found.replace(`{${name}}`, String(value)), about.command);
    this.say("settings", { ...this.settings, python: filled(about.code), command });
  }

  // Plans that are out of date, or the next step: after the page had time to draw.
  soon() {
    clearTimeout(this.timer);
    if (this.isStale) this.timer = setTimeout(() => this.replan());
    else if (this.isPlaying) this.timer = setTimeout(() => { this.move(); this.soon(); }, this.settings.speed ? Math.max(1000 * this.world.about.seconds / this.settings.speed - this.took, 0) : 0);
  }

  replan() {
    this.isStale = false;
    try {
      this.episodes.forEach((_, agent) => this.show(agent));
      this.say("rewards", { ...this.world.raster(this.settings.formula), formula: this.settings.formula });
      this.episodes.forEach((_, agent) => this.say("values", { ...this.world.values(this.settingsOf(agent)), agent }));
    } catch (error) { this.isPlaying = false; this.say("error", { text: error.message }); }
    this.soon();
  }

  move() {
    const begun = performance.now(), { gamma, formula } = this.settings, reward = this.world.reward(formula);
    this.episodes.forEach((episode, agent) => {
      if (!episode.decision) this.show(agent);
      episode.state = this.world.step(episode.state, episode.decision.action);
      episode.reward = reward(episode.state);
      episode.total += gamma ** episode.t * episode.reward;
      episode.t += 1;
      if (episode.reward > 0) episode.reached ??= episode.t;
      this.show(agent);
    });
    this.took = performance.now() - begun;
    if (this.episodes.every(({ reached, t }) => reached !== null || t >= this.world.about.max_steps)) this.finish();
  }

  finish() {
    this.episodes.forEach((episode, i) => { if (!episode.isCounted) { episode.isCounted = true; this.tally[i].episodes += 1; this.tally[i].reached += episode.reached !== null; } });
    this.say("tally", { tally: this.tally });
    if (this.settings.repeat) this.begin(this.seed + 1);
  }

  show(agent) {
    const episode = this.episodes[agent], begun = performance.now();
    const { action, ...about } = this.world.decide(episode.state, this.settingsOf(agent), seedOf(this.seed, agent, episode.t));
    episode.decision = { action };
    const { t, reward, total, reached } = episode;
    this.say("moment", { agent, t, place: this.world.place(episode.state), reward, return: total, reached, ended: false, tally: this.tally, milliseconds: performance.now() - begun, ...about });
  }
}

const fresh = (state) => ({ state, t: 0, total: 0, reward: 0, reached: null, decision: null, isCounted: false });
const nothing = (episodes) => episodes.map(() => ({ reached: 0, episodes: 0 }));
