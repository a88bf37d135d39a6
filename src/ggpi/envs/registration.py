"""Environments that `gymnasium.make` finds by name as soon as both packages are imported, in either order.

Gymnasium has no entry points for this any more, and `import ggpi` shall stay light, so it does not import
gymnasium: it registers now if gymnasium is there already, else right after someone imports it. MuJoCo, the
ant and the mazes are imported when one is made.
"""

import sys


def register() -> None:
    """Tells gymnasium of our environments."""
    import gymnasium

    for name, one, many in (
        ("ggpi/SparseAnt-v0", "ggpi.envs.ant:SparseAnt", "ggpi.envs.ant:SparseAntVector"),
        ("ggpi/PointMass-v0", "ggpi.envs.point_mass:point_mass", "ggpi.envs.point_mass:point_masses"),
        ("ggpi/PointMaze-v0", "ggpi.envs.maze:point_maze", "ggpi.envs.maze:point_mazes"),
    ):
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=one, vector_entry_point=many)


class _Watcher:
    """A finder of modules that sees gymnasium being imported for the first time, and registers after it."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "gymnasium":
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module):
                load(module)
                register()

            spec.loader.exec_module = load_and_register
        return spec


def register_when_possible() -> None:
    """Registers now, or once gymnasium is imported."""
    if "gymnasium" in sys.modules:
        register()
    elif not any(isinstance(finder, _Watcher) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watcher())
