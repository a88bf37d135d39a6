"""`ggpi fit` on an environment and policies of someone else: from files to models, and every complaint is one line."""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import jax
import numpy as np
import pytest

import ggpi
import ggpi.ghm.spline_flow
import ggpi.ghm.vae
import ggpi.learning.losses
from ggpi.cli import fit_environment as own_world
from ggpi.cli import policy_files
from ggpi.cli.main import main
from ggpi.cli.policy_files import read_policies
from ggpi.data import write_npy, write_npz
from ggpi.ghm import GHMs
from ggpi.lab import fit_directory as world_file
from ggpi.learning.flow_losses import TD2CFM, TDDD
from ggpi.learning.recipe import Recipe
from ggpi.policies import direction_policies, pendulum_policies

SB3 = Path(__file__).parents[2] / "data" / "sb3"
SMALL = ["--transitions", "600", "--steps", "5"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A directory with policies of both kinds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    shutil.copy(SB3 / "sac-pendulum.zip", "swing.zip")
    ggpi.save("brake", pendulum_policies()[1])
    ggpi.save("boxed", direction_policies()[:2])
    return tmp_path


def fit(*arguments):
    return main(["fit", *arguments])


def complaint(capsys, *arguments):
    assert fit(*arguments) == 2
    captured = capsys.readouterr()
    *_, line = captured.err.splitlines()  # before it, an environment may have warned
    assert captured.out == "" and line.startswith("ggpi: ")
    return line


@pytest.mark.slow
def test_from_files_to_models(folder, capsys, monkeypatch):
    given = ["--env", "Pendulum-v1", "--policies", "swing.zip", "brake", *SMALL, "--out", "models"]
    assert fit(*given, "--gamma", ".9", "--alpha", "1/9", "--tensorboard") == 0
    printed = capsys.readouterr().out
    assert "losses: models/losses.png" in printed and Path("models/losses.png").exists()
    assert "tensorboard --logdir models" in printed and list(Path("models").glob("events.out.tfevents.*"))
    assert all(
        word in printed for word in ("swing", "brake", "horizon 0.9", "horizon 0.8", "Held-out loss after 5")
    )
    assert "ggpi diagnose models --env Pendulum-v1" in printed
    verdict = json.loads(Path("models/verdict.json").read_text())
    for horizon in ("0.9", "0.8"):
        about = verdict["swing"][horizon]
        assert about["verdict"] == "bad", "after five steps"
        assert about["why"][0] in printed and "held_out_loss" in about
    assert "ggpi play models --reward target:cos=" in printed
    ghms = ggpi.load("models/models")
    assert ghms.names == ["swing", "brake"] and ghms.alphas == (1 / 9,)
    world = json.loads(Path("models/world.json").read_text())
    assert world["env"] == "Pendulum-v1" and world["names"] == ["cos", "sin", "speed"]
    assert world["actions"] == "1 numbers" and world["settings"]["steps"] == 5
    assert len(ggpi.data.read_npz("models/data.npz")) == 600

    monkeypatch.setattr("ggpi.diagnosis.truth.VISITED", 512)
    assert main(["diagnose", "models", "--env", "Pendulum-v1"]) == 0, "the printed command works"


@pytest.mark.parametrize(
    ("kl_weight", "losses", "is_judged"), [(1, 2.0, True), (20, 2.0, False), (1, None, False)]
)
def test_only_likelihoods_are_compared_with_knowing_nothing(monkeypatch, kl_weight, losses, is_judged):
    monkeypatch.setattr(own_world, "diagnose_held_out", lambda *args, **kwargs: {"up": {"0.9": {}}})
    monkeypatch.setattr(own_world, "split", lambda data, *rest: (data, data))
    ghms = GHMs((), 0.9, (), (SimpleNamespace(kl_weight=kl_weight),))
    one, state = np.zeros(1, int), np.zeros((1, 1), np.float32)
    data = ggpi.Transitions(state, one, state, one < 0, one == 0, one, one, one)
    found = own_world.fit_verdict(ghms, data, losses and np.full((1, 1), losses), jax.random.key(0))["up"][
        "0.9"
    ]
    assert ("held_out_loss" in found) == is_judged
    assert found["verdict"] == ("bad" if is_judged else "usable")


@pytest.mark.slow
def test_the_same_command_goes_on(folder, capsys, monkeypatch):
    given = ["--env", "Pendulum-v1", "--policies", "brake", *SMALL, "--out", "models"]

    def stopped(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(own_world, "fit", stopped)
        assert fit(*given) == 130
        assert "the same command continues" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(own_world, "collect", lambda *args, **kwargs: pytest.fail("collected again"))
        assert fit(*given) == 0
        first = capsys.readouterr().out
        assert fit(*given) == 0
        assert capsys.readouterr().out == first, "nothing is left to do"
    kept = len(Path("models/metrics.jsonl").read_text().splitlines())
    assert fit(*given, "--steps", "7") == 0
    printed = capsys.readouterr().out
    assert "Held-out loss after 7 steps" in printed and "--decay constant" in printed
    assert len(Path("models/metrics.jsonl").read_text().splitlines()) == kept + 1, "only the new steps"
    assert json.loads(Path("models/world.json").read_text())["settings"]["steps"] == 7
    assert "steps = 7, now it is 6; more steps continue it" in complaint(capsys, *given, "--steps", "6")
    other = [*given, "--steps", "7", "--batch-size", "64"]
    assert "batch_size = 256, now it is 64" in complaint(capsys, *other)
    other[-3] = "8"
    assert "batch_size = 256, now it is 64; choose" in complaint(capsys, *other), (
        "not the steps, which may grow"
    )


def test_a_fit_without_data_does_not_take_its_directory(folder, capsys):
    given = ["--env", "Pendulum-v1", "--policies", "brake", *SMALL, "--out", "models"]
    assert "no/such/data" in complaint(capsys, *given, "--data", "no/such/data")
    assert fit(*given) == 0
    capsys.readouterr()
    assert "data = None, now it is no/such/data" in complaint(capsys, *given, "--data", "no/such/data")


def test_options_reach_the_training(folder, capsys, monkeypatch):
    said = {}

    def stopped(policies, *args, **kwargs):
        said.update(kwargs, policies=policies)
        raise KeyboardInterrupt

    monkeypatch.setattr(own_world, "fit", stopped)
    monkeypatch.setattr(own_world, "transitions", lambda *args: None)
    given = ["--env", "Pendulum-v1", "--policies", "swing.zip", "--out", "models"]
    options = "--n-step 3 --batch-size 64 --learning-rate 3e-4 --decay constant --kl-weight 2 --latent 4"
    assert fit(*given, *options.split(), "--deterministic") == 130
    model, loss = ggpi.ghm.vae.VAEConfig(kl_weight=2.0, latent=4), ggpi.learning.losses.CETD(n_step=3)
    numbers = {"batch_size": 64, "learning_rate": 3e-4, "decay": "constant"}
    assert said["recipe"] == Recipe(model, loss, **numbers)
    (policy,), state = said["policies"], np.ones(3, np.float32)
    np.testing.assert_array_equal(policy.sample(state, key=jax.random.key(0)), policy.mode(state))
    assert fit(*given[:-1], "others", "--model", "flow", "--loss", "ll2td") == 130
    assert said["recipe"] == Recipe(ggpi.ghm.spline_flow.FlowConfig(), ggpi.learning.losses.LL2TD())
    assert fit(*given[:-1], "flow-matching", "--model", "flow-matching", "--n-step", "5") == 130
    assert said["recipe"] == Recipe(ggpi.FlowMatchingConfig(), TD2CFM(n_step=5))
    assert fit(*given[:-1], "diffusion", "--model", "diffusion", "--loss", "td-dd") == 130
    assert said["recipe"] == Recipe(ggpi.DiffusionConfig(), TDDD())
    assert fit(*given[:-1], "plain") == 130
    assert said["recipe"] == Recipe() and said["alpha"] == 0.1
    assert fit(*given[:-1], "one", "--one-network", "--consistency", ".25") == 130
    assert said["recipe"] == Recipe(ggpi.FlowMatchingConfig(), TD2CFM())
    assert (said["alpha"], said["consistency"]) == ("any", 0.25)


@pytest.mark.slow
def test_one_network_for_all_horizons(folder, capsys):
    given = ["--env", "Pendulum-v1", "--policies", "swing.zip", "brake", *SMALL, "--out", "models"]
    assert fit(*given, "--one-network", "--batch-size", "32", "--gamma", ".9", "--alpha", "1/9") == 0
    printed = capsys.readouterr().out
    assert "horizon 0.9" in printed and "ggpi play models" in printed
    ghms = ggpi.load("models/models")
    assert ghms.network is not None and ghms.alphas == (1 / 9,)
    assert ghms.with_gamma(0.5).with_alpha(0.3).horizons == pytest.approx((0.5, 0.35))
    assert set(json.loads(Path("models/verdict.json").read_text())["swing"]) == {"0.9", "0.8"}


@pytest.mark.parametrize("kind", ["npz", "npy", pytest.param("flat", marks=pytest.mark.slow)])
def test_data_that_one_has(folder, capsys, kind):
    data = ggpi.collect("ggpi/PointMass-v0", direction_policies()[:2], 600, seed=1)
    if kind == "npz":
        write_npz("data.npz", data)
    elif kind == "npy":
        write_npy("data", data)
    else:
        np.savez("flat.npz", observations=data.state, actions=data.action, next_observations=data.next_state)
    name = {"npz": "data.npz", "npy": "data", "flat": "flat.npz"}[kind]
    given = ["--env", "ggpi/PointMass-v0", "--policies", "boxed", "--data", name, "--steps", "2"]
    with pytest.warns(UserWarning) if kind == "flat" else nullcontext():
        assert fit(*given, "--relative", "x,y") == 0
    printed = capsys.readouterr().out
    out = "results/fit-ggpi-PointMass-v0-seed0"
    assert f"ggpi diagnose {out} --env ggpi/PointMass-v0" in printed and "state:  x, y, vx, vy" in printed
    assert ggpi.load(f"{out}/models").models[0].frame.kept == (2, 3)


@pytest.mark.slow
def test_places_are_seen_finely(folder):
    given = ["--env", "ggpi/PointMass-v0", "--policies", "boxed", "--transitions", "300", "--steps", "2"]
    assert fit(*given, "--places", "x,y") == 0
    out = Path("results/fit-ggpi-PointMass-v0-seed0")
    assert ggpi.load(out / "models").models[0].frame.places == (0, 1)
    assert world_file.read_world(out).spec.places == (0, 1)


@pytest.mark.slow
def test_dictionary_observations_by_keys(folder, capsys):
    pytest.importorskip("gymnasium_robotics")
    name = "gymnasium_robotics:PointMaze_UMaze-v3"
    world, _ = world_file.look(name, ("observation",))
    assert world.names == ("x", "y", "vx", "vy") and world.keys == ("observation",)
    line = complaint(capsys, "--env", name, "--policies", "boxed")
    assert "without a goal" in line and "keys=" in line
    assert "no key 'obs'" in complaint(capsys, "--env", name, "--policies", "boxed", "--keys", "obs")
    ggpi.save("maze", ggpi.policies.maze_policies()[:2])
    assert fit("--env", name, "--policies", "maze", "--keys", "observation", *SMALL, "--out", "models") == 0
    assert f"ggpi diagnose models --env {name} --keys observation" in capsys.readouterr().out


@pytest.mark.slow
def test_discrete_actions_and_ends_of_the_world(folder, capsys):
    given = [
        "--env",
        "CartPole-v1",
        "--policies",
        str(SB3 / "dqn-cartpole.zip"),
        str(SB3 / "a2c-cartpole.zip"),
    ]
    assert fit(*given, *SMALL, "--out", "models") == 0
    assert "--terminal FILE.py:FUNCTION" in capsys.readouterr().out
    assert json.loads(Path("models/world.json").read_text())["actions"] == "one of 2"


def test_data_that_lack_an_action(folder):
    policies = read_policies([str(SB3 / "a2c-cartpole.zip")])
    rows, states = np.arange(5), np.zeros((5, 4), np.float32)
    write_npz(
        "data.npz", ggpi.Transitions(states, 0 * rows, states, rows < 0, rows < 0, 0 * rows, rows, 0 * rows)
    )
    world, _ = world_file.look("CartPole-v1")
    config = own_world.WorldConfig(env="CartPole-v1", policies=("a2c-cartpole.zip",), data="data.npz")
    assert len(own_world.transitions(config, world, policies, folder)) == 5


def test_files_of_one_name_are_told_apart(folder):
    for name in ("one", "two"):
        Path(name).mkdir()
        shutil.copy("swing.zip", f"{name}/best_model.zip")
    found = read_policies(["one/best_model.zip", "two/best_model.zip", "swing.zip"])
    assert [policy.name for policy in found] == ["one/best_model", "two/best_model", "swing"]


def test_statistics_for_all_or_for_each(folder):
    zips = [str(SB3 / f"{name}-arm.zip") for name in ("ppo", "td3")]
    files = [name.replace(".zip", "-vecnormalize.pkl") for name in zips]
    with np.load(zips[0].replace(".zip", ".npz")) as recorded:
        state = recorded["states"][0]
    plain, one, each = (read_policies(zips, some) for some in ([], files[:1], files))
    np.testing.assert_array_equal(one[0].mode(state), each[0].mode(state))
    assert not np.array_equal(plain[1].mode(state), each[1].mode(state))
    with pytest.raises(ValueError, match=r"one for each of the 2 that are given without their own .*, got 3"):
        read_policies(zips, [*files, files[0]])
    pairs = [f"{name}:{file}" for name, file in zip(zips, files, strict=True)]
    for given in (read_policies(pairs), own_world.read_policies([zips[0], pairs[1]], files[:1])):
        assert [policy.name for policy in given] == ["ppo-arm", "td3-arm"]
        for policy, known in zip(given, each, strict=True):
            np.testing.assert_array_equal(policy.mode(state), known.mode(state))
    with pytest.raises(ValueError, match="the 0 that are given without their own"):
        read_policies(pairs, files[:1])


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("a.zip:vec.pkl", ("a.zip", "vec.pkl")),
        ("a.zip", ("a.zip", None)),
        (r"C:\runs\a.zip", (r"C:\runs\a.zip", None)),
        (r"C:\runs\a.zip:D:\vec.pkl", (r"C:\runs\a.zip", r"D:\vec.pkl")),
        ("runs/a.ZIP:b.zip:c", ("runs/a.ZIP", "b.zip:c")),
        ("old.zip:1/a.zip", ("old.zip:1/a.zip", None)),
    ],
)
def test_a_colon_behind_a_zip_begins_its_statistics(folder, word, parts):
    Path("old.zip:1").mkdir()
    Path("old.zip:1/a.zip").touch()
    assert policy_files._with_statistics(word) == parts


PENDULUM = ["--env", "Pendulum-v1", "--policies", "brake"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "ggpi fit needs --env and --policies; see ggpi fit --help"),
        (["--env", "Pendulum-v1"], "ggpi fit needs --policies"),
        (["--env", "Pendulum-v1", "--policies"], "no policies given"),
        (
            ["--env", "Nope-v0", "--policies", "brake"],
            "environment 'Nope-v0': Environment `Nope` doesn't exist",
        ),
        (["--env", "no_such_module:X-v0", "--policies", "brake"], "no_such_module"),
        (["--env", "FrozenLake-v1", "--policies", "brake"], "models are learned over vectors"),
        (["--env", "Blackjack-v1", "--policies", "brake"], "observations are Box vectors"),
        (["--env", "Pendulum-v1", "--policies", "nothing.zip"], "nothing.zip"),
        (["--env", "Pendulum-v1", "--policies", "empty"], "empty"),
        (["--env", "Pendulum-v1", "--policies", "swing.zip", "boxed"], "policy 1 (right)"),
        (["--env", "CartPole-v1", "--policies", "swing.zip"], "policy 0 (swing)"),
        (["--env", "MountainCarContinuous-v0", "--policies", "swing.zip"], "swing"),
        ([*PENDULUM, "--keys", "observation"], "leave keys out"),
        ([*PENDULUM, "--gamma", "1"], "γ lies in [0, 1)"),
        ([*PENDULUM, "--alpha", "0"], "α, the probability"),
        ([*PENDULUM, "--gama", ".9"], "--gama"),
        ([*PENDULUM, "--transitions", "10"], "transitions is at least 256, got 10"),
        ([*PENDULUM, "--steps", "0"], "steps is at least 1, got 0"),
        ([*PENDULUM, "--steps", "many"], "--steps: expected a whole number, got 'many'"),
        ([*PENDULUM, "--gamma", "much"], "--gamma: expected a number, got 'much'"),
        ([*PENDULUM, "--batch-size", "0"], "batch_size is at least 1, got 0"),
        ([*PENDULUM, "--n-step", "0"], "n_step is at least 1, got 0"),
        ([*PENDULUM, "--latent", "0"], "latent is at least 1, got 0"),
        ([*PENDULUM, "--learning-rate", "-1"], "learning_rate is a number from 0, got -1"),
        (
            [*PENDULUM, "--loss", "cemc", "--n-step", "2"],
            "--n-step is an option of the losses cetd, td-cfm, td-cfm-c, td2-cfm, td-dd, td2-dd, not of cemc",
        ),
        ([*PENDULUM, "--model", "flow", "--kl-weight", "2"], "--kl-weight is an option of the model vae"),
        ([*PENDULUM, "--loss", "ll2td"], "--loss ll2td needs densities, which a vae does not have"),
        ([*PENDULUM, "--loss", "td2-cfm"], "--model vae is trained by --loss cetd or cemc, not by td2-cfm"),
        ([*PENDULUM, "--model", "diffusion", "--loss", "td2-cfm"], "is trained by --loss td2-dd or td-dd"),
        ([*PENDULUM, "--model", "gan"], "--model"),
        ([*PENDULUM, "--consistency", ".25"], "--consistency relates the horizons of one network; add"),
        ([*PENDULUM, "--one-network", "--consistency", "1"], "consistency is a share from 0 to below 1"),
        ([*PENDULUM, "--one-network", "--model", "flow"], "--one-network is trained by the losses td-cfm"),
        (["--env", "Pendulum-v1", "--policies", "swing.zip:missing.pkl"], "missing.pkl"),
        ([*PENDULUM, "--relative", "x"], "no part of the state is called 'x'; there are cos, sin, speed"),
        ([*PENDULUM, "--places", "x"], "no part of the state is called 'x'; there are cos, sin, speed"),
        ([*PENDULUM, "--relative", "cos", "--places", "cos"], "so they are no places"),
        ([*PENDULUM, "--names", "a,b,c,d"], "--names are different names of the state's 3 coordinates"),
        ([*PENDULUM, "--names", "a,a"], "--names are different names"),
        ([*PENDULUM, "--data", "missing.npz"], "missing.npz"),
        ([*PENDULUM, "--data", "other.npz"], "other.npz: state has shape (4,), a state of Pendulum-v1 has 3"),
        ([*PENDULUM, "--vecnormalize", "missing.pkl", "--policies", "swing.zip"], "missing.pkl"),
        ([*PENDULUM, "--preset", "tiny"], "--preset only applies to ggpi fit ant"),
        ([*PENDULUM, "--out", "full"], "full holds files that are not of ggpi fit, such as mine.txt"),
        (["spider"], "no world is called 'spider'; the worlds are: ant"),
    ],
)
def test_complaints_come_before_the_first_step(folder, capsys, monkeypatch, arguments, words):
    monkeypatch.setattr(own_world, "collect", lambda *args, **kwargs: pytest.fail("collected"))
    monkeypatch.setattr(own_world, "fit", lambda *args, **kwargs: pytest.fail("fitted"))
    Path("empty").mkdir()
    Path("full").mkdir()
    Path("full/mine.txt").write_text("mine")
    if "other.npz" in arguments:
        write_npz("other.npz", ggpi.collect("ggpi/PointMass-v0", direction_policies(), 300))
    assert words in complaint(capsys, *arguments)


def test_a_saved_thing_that_is_no_policy(folder):
    ggpi.save("spec", ggpi.StateSpec(("x",)))
    with pytest.raises(ValueError, match="spec holds a StateSpec"):
        read_policies(["spec"])


def test_help_shows_both_forms_and_all_options(capsys):
    for arguments in (["--help"], ["-h"]):
        assert fit(*arguments) == 0
        shown = capsys.readouterr().out
        assert all(
            word in shown for word in ("ggpi fit ant", "--env ID --policies", "--vecnormalize", "examples")
        )


def test_a_world_that_says_its_names():
    env = gymnasium.make("ggpi/PointMass-v0")
    assert world_file._names(env, 4, ()) == ("x", "y", "vx", "vy")
    assert world_file._names(env, 4, ("east", "north")) == ("east", "north", "x2", "x3")
    assert world_file._names(env, 4, ("x1", "x2")) == ("x1", "x2", "x3", "x4")
    assert world_file._names(env, 4, ("x3",)) == ("x3", "x1", "x2", "x4")
    assert world_file._names(env, 5, ()) == ("x0", "x1", "x2", "x3", "x4")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "has no world.json"),
        ("{", "damaged or not JSON"),
        ("[]", "not of format"),
        ('{"format": "ggpi world 1"}', "names is a list of names, got None"),
        ('{"format": "ggpi world 1", "names": [], "keys": [], "relative": []}', "env is a name"),
    ],
)
def test_a_damaged_world_file(tmp_path, content, words):
    if content is not None:
        (tmp_path / "world.json").write_text(content)
    with pytest.raises(ValueError, match=words):
        world_file.read_world(tmp_path)
