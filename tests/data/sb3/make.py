"""Trains tiny policies with Stable-Baselines3 and records what they do: `python tests/data/sb3/make.py [NAME …]`.

Needs `pip install -e '.[sb3]'`. The zips are as Stable-Baselines3 wrote them, without optimisers and without the
description of the machine. Beside each zip, an npz holds observations, the actions of
`predict(deterministic=True)`, and the numbers of the action distribution.
"""

import sys
import zipfile
from pathlib import Path

import gymnasium
import numpy as np
import torch
from sb3_contrib import QRDQN, TQC
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from ggpi.policies.networks import ACTIVATIONS

HERE = Path(__file__).parent
LEFT_OUT = ("optimizer.pth", "system_info.txt")


class Arm(gymnasium.Env):
    """Two actions whose bounds are neither symmetric nor equal; three numbers far from zero."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gymnasium.spaces.Box(np.float32([-1, -3]), np.float32([2, 0.5]))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.normal(size=3)
        return self._seen(), {}

    def step(self, action):
        self.x = 0.9 * self.x + 0.1 * np.append(action, self.np_random.normal())
        return self._seen(), -float(self.x @ self.x), False, bool(self.np_random.random() < 0.05), {}

    def _seen(self):
        return (1000 + self.x * [1, 0.1, 0.01]).astype(np.float32)


def normalised(env, **settings):
    return VecNormalize(DummyVecEnv([env]), **settings)


OFF_POLICY = {"learning_starts": 100, "batch_size": 32, "buffer_size": 1000, "seed": 0}
SMALL = {"net_arch": [8, 8]}
ELU = {"net_arch": [8, 6], "activation_fn": torch.nn.ELU}
GELU = {"net_arch": [6], "activation_fn": torch.nn.GELU}
LEARNED = {"net_arch": [12, 4], "activation_fn": torch.nn.PReLU}
UNEVEN = {"net_arch": {"pi": [8], "vf": [4]}}
EXPLN = SMALL | {"use_expln": True, "log_std_init": 0.2}


def on_arm(algorithm, chosen, num_steps, clip_obs=10.0, **settings):
    """A model of the arm behind VecNormalize, which is returned too."""
    far = normalised(Arm, clip_obs=clip_obs)
    return algorithm("MlpPolicy", far, seed=0, policy_kwargs=chosen, **settings).learn(num_steps), far


def on(env, algorithm, chosen, num_steps, **settings):
    return algorithm("MlpPolicy", env, policy_kwargs=chosen, **settings).learn(num_steps), None


TRAININGS = {
    "ppo-arm": lambda: on_arm(PPO, ELU, 512, 2.0, n_steps=64),
    "a2c-cartpole": lambda: on("CartPole-v1", A2C, UNEVEN, 500, seed=0),
    "sac-pendulum": lambda: on("Pendulum-v1", SAC, SMALL, 300, **OFF_POLICY),
    "td3-arm": lambda: on_arm(TD3, GELU, 300, **{k: v for k, v in OFF_POLICY.items() if k != "seed"}),
    "dqn-cartpole": lambda: on("CartPole-v1", DQN, LEARNED, 300, **OFF_POLICY),
    "gsde-arm": lambda: on_arm(PPO, ELU | {"full_std": False}, 512, n_steps=64, use_sde=True),
    "gsde-pendulum": lambda: on("Pendulum-v1", SAC, EXPLN, 300, use_sde=True, **OFF_POLICY),
    "tqc-pendulum": lambda: on("Pendulum-v1", TQC, SMALL | {"n_quantiles": 5}, 300, **OFF_POLICY),
    "qrdqn-cartpole": lambda: on(
        "CartPole-v1", QRDQN, SMALL | {"n_quantiles": 7}, 300, learning_rate=0.01, **OFF_POLICY
    ),
}
"""For each name a trained model, and its VecNormalize if it has one."""


def observations(model, vec):
    """Some that were met, some that are wild."""
    rng = np.random.default_rng(0)
    size = model.observation_space.shape[0]
    mean, std = (
        (np.zeros(size), np.ones(size)) if vec is None else (vec.obs_rms.mean, np.sqrt(vec.obs_rms.var))
    )
    return (mean + std * rng.normal(size=(60, size)) * rng.choice([0.3, 1, 5], (60, 1))).astype(np.float32)


def distribution(model, seen):
    """The numbers that the policy's network gives."""
    tensor = torch.as_tensor(seen, dtype=torch.float32)
    with torch.no_grad():
        if isinstance(model, SAC | TQC):
            mean, log_std, features = model.actor.get_action_dist_params(tensor)
            if model.use_sde:
                chosen = model.actor.action_dist.proba_distribution(mean, log_std, **features).distribution
                log_std = chosen.stddev.log()
            return {"mean": mean.numpy(), "log_std": log_std.numpy()}
        if isinstance(model, TD3):
            return {}
        if isinstance(model, DQN):
            return {"values": model.q_net(tensor).numpy()}
        if isinstance(model, QRDQN):
            return {"values": model.quantile_net(tensor).mean(dim=1).numpy()}
        chosen = model.policy.get_distribution(tensor).distribution
        if hasattr(chosen, "logits"):
            return {"logits": chosen.logits.numpy()}
        return {"mean": chosen.mean.numpy(), "std": chosen.stddev.numpy()}


def record(name, model, vec):
    model.save(HERE / name)
    keep = {}
    with zipfile.ZipFile(HERE / f"{name}.zip") as written:
        for member in written.namelist():
            if not member.endswith(LEFT_OUT):
                keep[member] = written.read(member)
    with zipfile.ZipFile(HERE / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as slim:
        for member, content in keep.items():
            slim.writestr(member, content)
    states = observations(model, vec)
    seen = states
    if vec is not None:
        vec.save(HERE / f"{name}-vecnormalize.pkl")
        seen = vec.normalize_obs(states)
    actions, _ = model.predict(seen, deterministic=True)
    np.savez(HERE / f"{name}.npz", states=states, actions=actions, **distribution(model, seen))


def main():
    torch.set_num_threads(1)
    for name in sys.argv[1:] or TRAININGS:
        record(name, *TRAININGS[name]())
    if sys.argv[1:]:
        return
    x = torch.linspace(-6, 6, 49)
    values = {name: getattr(torch.nn, name)().eval()(x).numpy() for name in ACTIVATIONS}
    np.savez_compressed(HERE / "activations.npz", x=x.numpy(), **values)


if __name__ == "__main__":
    main()
