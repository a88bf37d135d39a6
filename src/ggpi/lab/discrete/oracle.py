"""GPI with simulated futures instead of models, in environments that JAX can step."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from ggpi.lab.discrete.environments import Function, World
from ggpi.rewards import Reward
from ggpi.types import Key, Numbers


class Oracle:
    """Acts on Q^π(x, a) of every base policy and action, each the mean of simulated episodes."""

    def __init__(
        self,
        world: World,
        reward: Reward,
        gamma: float,
        mode: Literal["head", "all"],
        *,
        length: int = 100,
        num_episodes: int = 8,
    ):
        self.world, self.reward, self.gamma, self.mode = world, reward, gamma, mode
        self.length, self.num_episodes = length, num_episodes
        self._act = jax.jit(jax.vmap(self._act_in))

    def act(self, states: np.ndarray, *, key: Key) -> np.ndarray:
        return np.asarray(self._act(states, jax.random.split(key, len(states))))

    def _act_in(self, state: Numbers, key: Key) -> Array:
        value_key, act_key = jax.random.split(key)
        policies = list(self.world.policies.values())
        q = jnp.stack([self._q(state, logits, value_key) for logits in policies])
        if self.mode == "all":
            return q.max(axis=0).argmax()
        logits = jnp.stack([policy(state) for policy in policies])
        head = (jax.nn.softmax(logits) * q).sum(axis=1).argmax()
        return jax.random.categorical(act_key, logits[head])

    def _q(self, state: Numbers, logits: Function, key: Key) -> Array:
        """Q^π(x, a) of every action; all see the same noise."""
        keys = jax.random.split(key, self.num_episodes)
        one = jax.vmap(lambda action, key: self._episode(state, action, logits, key), (None, 0))
        return jax.vmap(lambda action: one(action, keys).mean())(jnp.arange(self.world.num_actions))

    def _episode(self, state: Numbers, action: ArrayLike, logits: Function, key: Key) -> Array:
        """The discounted reward of one simulated episode that starts with an action."""
        step, terminal, pay = self.world.step, self.world.terminal, self.reward.values
        assert step is not None and terminal is not None and callable(pay)

        def body(carry: tuple[Array, ...], key: Key) -> tuple[tuple[Array, ...], None]:
            x, a, weight, total = carry
            x = step(x, a)
            total = total + weight * pay(x)
            weight = jnp.where(terminal(x), 0.0, self.gamma * weight)
            return (x, jax.random.categorical(key, logits(x)), weight, total), None

        begin = jnp.asarray(state), jnp.asarray(action), jnp.float32(1.0), jnp.float32(0.0)
        (_, _, _, total), _ = jax.lax.scan(body, begin, jax.random.split(key, self.length))
        return total
