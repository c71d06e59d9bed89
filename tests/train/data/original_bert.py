"""Loads the scripts of google-research/bert from the package bert-tensorflow, without TensorFlow: the functions
that tests call need it only to open files."""
import importlib.util
import os
import sys
import types


class Nothing(types.ModuleType):
    """Stands for any module: every attribute and call gives it again."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments, **named):
        return self


def load(name):
    """bert/NAME.py as a module; None where the package is missing."""
    package = importlib.util.find_spec("bert")
    if package is None:
        return None
    nothing = Nothing("nothing")
    tensorflow = Nothing("tensorflow")
    tensorflow.gfile = types.SimpleNamespace(GFile=lambda path, mode: open(path, mode, encoding="utf-8"),
                                             Open=lambda path, mode: open(path, mode, encoding="utf-8"))
    tensorflow.logging = nothing
    for fake in ("absl", "absl.flags", "absl.logging", "bert.modeling", "bert.optimization"):
        sys.modules.setdefault(fake, nothing)
    for fake in ("tensorflow", "tensorflow.compat", "tensorflow.compat.v1"):
        sys.modules.setdefault(fake, tensorflow)
    folder = package.submodule_search_locations[0]
    spec = importlib.util.spec_from_file_location("bert." + name, os.path.join(folder, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["bert." + name] = module
    if name != "tokenization":
        load("tokenization")
    spec.loader.exec_module(module)
    if name == "tokenization":
        module.validate_case_matches_checkpoint = lambda *a: None  # it knows the published checkpoints alone
    return module
