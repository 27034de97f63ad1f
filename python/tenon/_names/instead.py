"""What to write for names of PyTorch's that Tenon has not, by name: in the code, `x` and `y` are tensors. Loaded when a message
about such a name is read."""

INSTEAD = {
    # Of a tensor
    "cuda": 'x.to("cuda"), where a plug-in offers a device of that name; there is no CUDA in Tenon',
    # Functions and rooms
    "quasirandom": "scipy.stats.qmc.Sobol, whose points tenon.from_numpy takes; Tenon leaves out its 400 KB of direction numbers",
    "fx": "tenon.compile(f), whose explain() lists what was recorded",
    "export": "tenon.compile(f)",
    "vmap": "a batch dimension in front: operators broadcast over it",
    "func": "tenon.autograd.grad for grad and vjp, and a batch dimension in front for vmap; there is no functional_call",
    "profiler": "tenon.dispatch.trace()",
}
