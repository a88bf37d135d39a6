"""Stable-Baselines3 itself trains, saves and predicts; our actions are the same. `make test-sb3` installs it."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ggpi import GGPIAgent, collect, fit, load_sb3, policy_from
from ggpi.policies import PolicyBank
from ggpi.policies.networks import ACTIVATIONS
from ggpi.rewards import target

sb3 = pytest.importorskip("stable_baselines3")
torch = pytest.importorskip("torch")
contrib = pytest.importorskip("sb3_contrib")
KEY = jax.random.key(0)
pytestmark = pytest.mark.filterwarnings("ignore")

from stable_baselines3.common.evaluation import evaluate_policy  # noqa: E402
from stable_baselines3.common.torch_layers import FlattenExtractor  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize  # noqa: E402

torch.set_num_threads(1)
SDE = {"use_sde": True}
OFF = {"learning_starts": 50, "batch_size": 16, "buffer_size": 1000}
CASES = {
    "ppo": (sb3.PPO, "Pendulum-v1", {"n_steps": 64}, {"net_arch": [16, 16]}),
    "ppo-discrete": (sb3.PPO, "CartPole-v1", {"n_steps": 64}, {"net_arch": {"pi": [16, 8], "vf": []}}),
    "ppo-linear": (sb3.PPO, "Pendulum-v1", {"n_steps": 64}, {"net_arch": []}),
    "a2c": (sb3.A2C, "Pendulum-v1", {}, {"net_arch": [16], "activation_fn": torch.nn.SiLU}),
    "a2c-discrete": (sb3.A2C, "CartPole-v1", {}, {"share_features_extractor": False, "ortho_init": False}),
    "sac": (sb3.SAC, "Pendulum-v1", OFF, {"net_arch": {"pi": [16, 12], "qf": [8]}}),
    "sac-wide": (sb3.SAC, "Pendulum-v1", OFF, {"activation_fn": torch.nn.LeakyReLU}),
    "td3": (sb3.TD3, "Pendulum-v1", OFF, {"net_arch": [16, 12, 8]}),
    "ddpg": (sb3.DDPG, "Pendulum-v1", OFF, {"net_arch": [16]}),
    "dqn": (sb3.DQN, "CartPole-v1", OFF, {"net_arch": [16, 16]}),
    "dqn-prelu": (sb3.DQN, "CartPole-v1", OFF, {"net_arch": [16, 16], "activation_fn": torch.nn.PReLU}),
    "ppo-gsde": (sb3.PPO, "Pendulum-v1", {"n_steps": 64} | SDE, {"net_arch": [16, 16]}),
    "ppo-gsde-linear": (sb3.PPO, "Pendulum-v1", {"n_steps": 64} | SDE, {"net_arch": [], "full_std": False}),
    "ppo-gsde-squashed": (sb3.PPO, "Pendulum-v1", {"n_steps": 64} | SDE, {"squash_output": True}),
    "a2c-gsde": (sb3.A2C, "Pendulum-v1", SDE, {"net_arch": [16], "use_expln": True, "log_std_init": 0.5}),
    "sac-gsde": (sb3.SAC, "Pendulum-v1", OFF | SDE, {"net_arch": [16, 12]}),
    "sac-gsde-free": (sb3.SAC, "Pendulum-v1", OFF | SDE, {"net_arch": [16], "clip_mean": 0.0}),
    "sac-gsde-tight": (sb3.SAC, "Pendulum-v1", OFF | SDE, {"clip_mean": 0.05, "use_expln": True}),
    "trpo": (contrib.TRPO, "Pendulum-v1", {"n_steps": 64}, {"net_arch": [16, 16]}),
    "tqc": (contrib.TQC, "Pendulum-v1", OFF, {"net_arch": [16, 12], "n_quantiles": 5}),
    "tqc-gsde": (contrib.TQC, "Pendulum-v1", OFF | SDE, {"net_arch": [16, 12]}),
    "qrdqn": (contrib.QRDQN, "CartPole-v1", OFF, {"net_arch": [16, 16]}),
    "qrdqn-few": (contrib.QRDQN, "CartPole-v1", OFF, {"n_quantiles": 3, "activation_fn": torch.nn.ELU}),
}


def states_of(env, count=200):
    """Visited by random actions, then some that are wild."""
    env = gymnasium.make(env)
    env.action_space.seed(0)
    seen = [env.reset(seed=0)[0]]
    while len(seen) < count:
        state, _, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append(env.reset()[0] if terminated or truncated else state)
    rng = np.random.default_rng(0)
    return np.concatenate([seen, 3 * rng.normal(size=np.shape(seen))]).astype(np.float32)


@pytest.mark.parametrize("normalises", [False, True], ids=["raw", "normalised"])
@pytest.mark.parametrize("case", CASES)
def test_actions_agree(case, normalises, tmp_path):
    algorithm, env, settings, chosen = CASES[case]
    vec = VecNormalize(DummyVecEnv([lambda: gymnasium.make(env)]), norm_obs=normalises, clip_obs=3.0)
    model = algorithm("MlpPolicy", vec, seed=1, policy_kwargs=dict(chosen), **settings).learn(200)
    model.save(tmp_path / "policy")
    vec.save(str(tmp_path / "vec.pkl"))
    states = states_of(env)
    wanted, _ = model.predict(vec.normalize_obs(states), deterministic=True)
    policy = load_sb3(tmp_path / "policy.zip", vecnormalize=tmp_path / "vec.pkl")
    np.testing.assert_allclose(policy.mode(states), wanted, atol=1e-5, rtol=0)
    steady = load_sb3(tmp_path / "policy.zip", vecnormalize=tmp_path / "vec.pkl", deterministic=True)
    np.testing.assert_allclose(steady.sample(states, key=KEY), wanted, atol=1e-5, rtol=0)
    if settings.get("use_sde"):
        check_noise(model, policy, states, vec.normalize_obs(states))
    data = collect(env, [policy], 20, num_envs=2)
    assert data.action.shape == (20, *vec.action_space.shape) and PolicyBank([policy]).members == ((0,),)


def check_noise(model, policy, states, seen):
    """Mean and deviation before squashing are those of the real distribution."""
    tensor = torch.as_tensor(seen, dtype=torch.float32)
    with torch.no_grad():
        if hasattr(model, "actor"):
            mean, log_std, features = model.actor.get_action_dist_params(tensor)
            real = model.actor.action_dist.proba_distribution(mean, log_std, **features).distribution
        else:
            real = model.policy.get_distribution(tensor).distribution
    mean, deviation = jax.vmap(policy.function)(states)
    deviation = np.exp(deviation) if hasattr(policy, "_unscale") else deviation
    np.testing.assert_allclose(mean, real.mean, atol=1e-5)
    np.testing.assert_allclose(deviation, real.stddev, rtol=1e-4)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_every_activation(name, tmp_path):
    chosen = {"net_arch": [16, 16], "activation_fn": getattr(torch.nn, name)}
    model = sb3.TD3("MlpPolicy", "Pendulum-v1", seed=0, policy_kwargs=chosen, **OFF)
    model.save(tmp_path / "policy")
    states = states_of("Pendulum-v1")
    wanted, _ = model.predict(states, deterministic=True)
    np.testing.assert_allclose(load_sb3(tmp_path / "policy").mode(states), wanted, atol=1e-5, rtol=0)


class Other(gymnasium.Env):
    """Images or dictionaries."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, space):
        self.observation_space = space

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}


class Extractor(FlattenExtractor):
    """Someone's own."""


class Policy(sb3.dqn.policies.DQNPolicy):
    """Someone's own."""


def test_the_unsupported_are_refused_by_name(tmp_path):
    image = Other(gymnasium.spaces.Box(0, 255, (36, 36, 3), np.uint8))
    mixed = Other(gymnasium.spaces.Dict(a=gymnasium.spaces.Box(-1, 1, (2,)), b=gymnasium.spaces.Discrete(3)))
    number = Other(gymnasium.spaces.Discrete(4))
    plain = "CartPole-v1"
    own = {"features_extractor_class": Extractor}
    for words, algorithm, policy, env, settings in (
        ("data.policy_class: .*CnnPolicy is not supported", sb3.DQN, "CnnPolicy", image, OFF),
        ("data.policy_class: .*MultiInputPolicy is not", sb3.DQN, "MultiInputPolicy", mixed, OFF),
        ("data.policy_class: .*ActorCriticCnnPolicy is not", sb3.PPO, "CnnPolicy", image, {"n_steps": 8}),
        ("data.observation_space: .*Discrete", sb3.A2C, "MlpPolicy", number, {}),
        ("features_extractor_class: .*Extractor", sb3.A2C, "MlpPolicy", plain, {"policy_kwargs": own}),
        ("data.policy_class: it names", sb3.DQN, Policy, plain, OFF),
    ):
        algorithm(policy, env, **settings).save(tmp_path / "policy")
        with pytest.raises(ValueError, match=rf"policy.zip: .*{words}"):
            load_sb3(tmp_path / "policy.zip")


@pytest.mark.parametrize("env", ["Pendulum-v1", "CartPole-v1"])
def test_its_evaluation_loop_takes_an_agent(env):
    """With one environment or several, of vectors or of discrete actions; the same seed gives the same rewards."""
    space = gymnasium.make(env).action_space
    make = (lambda a: lambda s: a) if env == "CartPole-v1" else (lambda a: lambda s: jnp.full(1, 2.0 * a - 1))
    policies = [policy_from(make(a), space, name=str(a)) for a in range(2)]
    data = collect(env, policies, 300, switch_every=10)
    ghms = fit(policies, data, gamma=0.9, alpha=0.1, key=jax.random.key(0), steps=2, batch_size=32)
    rewards = []
    for _ in range(2):
        agent = GGPIAgent(ghms, target([0.0], 1.0, [0]), depth=1, num_samples=4, seed=5)
        vector = DummyVecEnv([lambda: gymnasium.make(env)] * 2)
        vector.seed(0)
        rewards.append(evaluate_policy(agent, vector, n_eval_episodes=2, return_episode_rewards=True)[0])
    assert rewards[0] == rewards[1] and len(rewards[0]) == 2
