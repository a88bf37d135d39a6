"""Trains the two small policies of the README: a pendulum that spins to one side.

    pip install stable-baselines3
    python examples/make_policies.py

Each is a PPO of 16 × 16 units, rewarded for speed to its side, and takes about a minute.
"""

from pathlib import Path

import gymnasium
from stable_baselines3 import PPO


class Spin(gymnasium.Wrapper):
    """Pendulum-v1 with its angular speed as the reward, to the left (1) or to the right (−1)."""

    def __init__(self, side: float):
        super().__init__(gymnasium.make("Pendulum-v1"))
        self.side = side

    def step(self, action):
        seen, _, terminated, truncated, info = self.env.step(action)
        return seen, self.side * float(seen[2]) / 8, terminated, truncated, info


for name, side in (("spin-left", 1.0), ("spin-right", -1.0)):
    settings = {"n_steps": 512, "gamma": 0.95, "learning_rate": 1e-3, "policy_kwargs": {"net_arch": [16, 16]}}
    model = PPO("MlpPolicy", Spin(side), seed=0, device="cpu", **settings)
    model.learn(20_000)
    model.save(Path(__file__).with_name(name))
