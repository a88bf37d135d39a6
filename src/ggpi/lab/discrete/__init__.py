"""CartPole, Acrobot and LunarLander."""
