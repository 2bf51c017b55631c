"""Frameworks that train nothing: whatever a program imports from them, calls or computes with is
`Anything`. On the PYTHONPATH of a program whose settings are looked at, not its training.
"""

import importlib.abc
import importlib.machinery
import sys
import types

_STUBS = ("torch", "keras", "tensorflow", "torchvision")


class Anything:
    """Takes and gives whatever it is asked for."""

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return Anything()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __mro_entries__(self, bases):
        return (_Module,)

    def __getitem__(self, key):
        return Anything()

    def __setitem__(self, key, value):
        pass

    def __iter__(self):
        return iter((Anything(), Anything()))

    def __len__(self):
        return 2

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def __float__(self):
        return 0.5

    def __format__(self, spec):
        return "0.5"

    def _same(self, *other):
        return Anything()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same
    __truediv__ = __rtruediv__ = __pow__ = __neg__ = __gt__ = __lt__ = _same


class _Module(Anything):
    def __call__(self, *args, **kwargs):
        forward = getattr(type(self), "forward", None) or getattr(type(self), "call", None)
        return forward(self, *args, **kwargs) if forward else Anything()


class _Stub(types.ModuleType):
    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in _STUBS:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Stub(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, _Finder())
