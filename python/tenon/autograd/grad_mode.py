"""no_grad, enable_grad, set_grad_enabled, inference_mode: context managers that are decorators too."""

import functools

from .._C import _set_grad_enabled, _set_inference_mode


_CO_GENERATOR = 0x20  # inspect.CO_GENERATOR; importing inspect takes longer than all of tenon


class _Mode:
    """Calls a decorated function, or each step of a decorated generator, inside a fresh copy of the mode."""

    def _again(self):
        return type(self)()

    def __call__(self, function):
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & _CO_GENERATOR:

            @functools.wraps(function)
            def wrapped(*args, **kwargs):
                steps = function(*args, **kwargs)
                value, error = None, None
                while True:
                    try:
                        with self._again():
                            item = steps.throw(error) if error else steps.send(value)
                    except StopIteration as stop:
                        return stop.value
                    try:
                        value, error = (yield item), None
                    except GeneratorExit:
                        steps.close()
                        raise
                    except BaseException as raised:  # handed on to the generator
                        value, error = None, raised

            return wrapped

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        return wrapped


class no_grad(_Mode):
    """Switches recording of history off inside."""

    def __new__(cls, function=None):
        mode = super().__new__(cls)
        return mode if function is None else mode(function)

    def __enter__(self):
        self.previous = _set_grad_enabled(False)

    def __exit__(self, *exception):
        _set_grad_enabled(self.previous)


class enable_grad(_Mode):
    """Switches recording of history on inside, even within no_grad."""

    def __new__(cls, function=None):
        mode = super().__new__(cls)
        return mode if function is None else mode(function)

    def __enter__(self):
        self.previous = _set_grad_enabled(True)

    def __exit__(self, *exception):
        _set_grad_enabled(self.previous)


class set_grad_enabled(_Mode):
    """Sets the mode at once; as a context manager, until the end of the block."""

    def __init__(self, mode):
        self.mode = mode
        self.previous = _set_grad_enabled(self.mode)

    def _again(self):
        return set_grad_enabled(self.mode)

    def __call__(self, function):
        _set_grad_enabled(self.previous)  # a decorator changes nothing until the function runs
        return super().__call__(function)

    def __enter__(self):
        _set_grad_enabled(self.mode)

    def __exit__(self, *exception):
        _set_grad_enabled(self.previous)


class inference_mode(_Mode):
    """Switches off history and the tracking of views. Tensors made inside can never take part in autograd."""

    def __new__(cls, mode=True):
        if callable(mode):
            return cls()(mode)
        self = super().__new__(cls)
        self.mode = mode
        return self

    def _again(self):
        return inference_mode(self.mode)

    def __enter__(self):
        self.previous = _set_inference_mode(self.mode), _set_grad_enabled(not self.mode)
        if not self.mode:
            _set_grad_enabled(self.previous[1])

    def __exit__(self, *exception):
        _set_inference_mode(self.previous[0])
        _set_grad_enabled(self.previous[1])
