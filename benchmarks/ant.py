"""How fast ants are stepped: ours, gymnasium's Ant-v5 with as many substeps, and bare `mujoco.rollout`.

Each contestant is timed in turn, several times over, and the best turns are compared: ratios of one run on one
machine. Then MPO's learner steps per second, and where its time goes. Writes `benchmarks/results/ant.json`.
"""

import json
import time
from pathlib import Path

import gymnasium
import jax
import mujoco
import numpy as np
from mujoco import rollout

from ggpi.envs.ant import SparseAntVector, physics
from ggpi.lab.pretraining import Training, mpo, preset

ANTS, FEW, STEPS, REPEATS, THREADS = 128, 16, 5, 9, 2
FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS


def ours():
    """Closed loop, with observations, rewards, ends of episodes and resets."""
    env = SparseAntVector(ANTS, target=None, num_threads=THREADS)
    env.reset(seed=0)
    return lambda actions: [env.step(action) for action in actions]


def bare():
    """`mujoco.rollout` alone, one control step per call, on the same model; nothing is observed."""
    model = physics.model()
    datas = [mujoco.MjData(model) for _ in range(THREADS)]
    env = SparseAntVector(ANTS, target=None)
    env.reset(seed=0)
    state = np.stack([full_state(model, datas[0], qpos) for qpos in env.batch.qpos])
    pool = rollout.Rollout(nthread=THREADS)

    def go(actions):
        nonlocal state
        for action in actions:
            control = np.repeat(physics.controls(action)[:, None], physics.SUBSTEPS, axis=1)
            states, _ = pool.rollout(model, datas, state, control)
            state = states[:, -1]

    return go


def full_state(model, data, qpos):
    data.qpos[:] = qpos
    state = np.zeros(mujoco.mj_stateSize(model, FULL))
    mujoco.mj_getState(model, data, state, FULL)
    return state


def stock(mode):
    """Gymnasium's vector of Ant-v5, its stock model, with our number of substeps; few ants: each is a process."""
    env = gymnasium.make_vec(
        "Ant-v5", FEW, vectorization_mode=mode, frame_skip=physics.SUBSTEPS, terminate_when_unhealthy=False
    )
    env.reset(seed=0)
    return lambda actions: [env.step(action) for action in actions]


def race(contestants):
    """Control steps per second of each, the best of its turns."""
    actions = np.random.default_rng(0).uniform(-1, 1, (STEPS, ANTS, 8)).astype(np.float32)
    seconds = {name: [] for name in contestants}
    for turn in range(REPEATS + 1):
        for name, go in contestants.items():
            ants = FEW if name in ("sync", "async") else ANTS
            begin = time.perf_counter()
            go(actions[:, :ants])
            if turn:
                seconds[name].append((time.perf_counter() - begin) / ants)
    return {name: round(STEPS / min(times)) for name, times in seconds.items()}


def learner(rounds=5):
    """MPO of the cpu preset: updates per second, and the shares of physics, learning and the rest."""
    training = Training(preset("cpu", "mpo"))
    spent = {"physics": 0.0, "learning": 0.0}
    batch = training.walkers.env.batch
    batch_step, updates = batch.step, mpo.updates
    timed(spent, "physics", batch_step, lambda f: object.__setattr__(batch, "step", f))
    timed(spent, "learning", updates, lambda f: setattr(mpo, "updates", f))
    training.round()  # compiles
    spent.update(physics=0.0, learning=0.0)
    begin = time.perf_counter()
    for _ in range(rounds):
        training.round()
    total = time.perf_counter() - begin
    mpo.updates = updates
    shares = {name: round(value / total, 3) for name, value in spent.items()}
    rest = round(1 - sum(shares.values()), 3)
    return {
        "updates_per_second": round(rounds * training.config.mpo.updates / total, 1),
        **shares,
        "rest": rest,
    }


def timed(spent, name, function, put):
    def wrapped(*arguments, **options):
        begin = time.perf_counter()
        result = jax.block_until_ready(function(*arguments, **options))
        spent[name] += time.perf_counter() - begin
        return result

    put(wrapped)


def main():
    contestants = {"ours": ours(), "bare rollout": bare(), "sync": stock("sync"), "async": stock("async")}
    speeds = race(contestants)
    ratios = {
        "ours / best of make_vec": round(speeds["ours"] / max(speeds["sync"], speeds["async"]), 2),
        "ours / bare rollout": round(speeds["ours"] / speeds["bare rollout"], 2),
    }
    results = {"control_steps_per_second": speeds, "ratios": ratios, "mpo": learner()}
    print(json.dumps(results, indent=1))
    path = Path(__file__).parent / "results" / "ant.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
